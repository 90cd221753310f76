"""A streaming query from topic to topic, exactly once, in a session of its own; a test kills it."""

import sys

from pyspark.sql import SparkSession


def main(source_servers: str, target_servers: str, source: str, topic: str, checkpoint: str) -> None:
    spark = SparkSession.builder.master("local[3]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.readStream.format("sparkmirror").option("subscribe", source)
    frame = frame.option("kafka.bootstrap.servers", source_servers).option("startingOffsets", "earliest")
    records = frame.option("maxOffsetsPerTrigger", "900").load().select("key", "value", "timestamp")
    writer = records.writeStream.format("sparkmirror").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", target_servers).option("checkpointLocation", checkpoint)
    query = writer.option("transactional.id.prefix", topic).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
