"""Offset syncs, checkpoints, and the translation of offsets between clusters. Pure."""
