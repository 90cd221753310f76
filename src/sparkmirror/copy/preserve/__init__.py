"""Partitions whose offsets are preserved: the end of the target's log, filled gaps, log starts."""
