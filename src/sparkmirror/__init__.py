"""Kafka MirrorMaker 2 on Spark: copies record batches between Kafka clusters."""

from importlib.metadata import version

__version__ = version("sparkmirror")
