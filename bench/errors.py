"""Defines the errors of benchmarks. One side's failure is reported in its row; the other sides still run."""


class BenchError(Exception):
    """A run can't be measured; the message says why and holds the end of the side's log."""
