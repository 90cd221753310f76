"""Kafka as Spark data frames: the format `sparkmirror`, with the options of Spark's own Kafka connector."""
