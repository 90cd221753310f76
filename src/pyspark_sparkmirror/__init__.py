"""Lets Spark find the format `sparkmirror`: it looks for `DefaultSource` in packages called `pyspark_…`."""

from sparkmirror.dataframes.data_source import KafkaDataSource as DefaultSource
from sparkmirror.dataframes.query_offset import offsets_behind_latest

__all__ = ["DefaultSource", "offsets_behind_latest"]
