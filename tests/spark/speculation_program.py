"""Writes rows on a cluster with speculation; the first attempt of the last task waits in its middle."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

ROWS: Final = 400
TASKS: Final = 4
SLOW_S: Final = 20
SPECULATION: Final[dict[str, bool | float | int | str | None]] = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}


def main(master: str, servers: str, topic: str, attempts: str) -> None:
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config(map=SPECULATION)
    builder = builder.config("spark.executor.memory", "512m").config("spark.executor.cores", "1")
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "10").getOrCreate()

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        task, attempt = context.partitionId(), context.attemptNumber()
        Path(attempts, f"{task}.{attempt}").touch()
        for number, batch in enumerate(batches):
            if number == 1 and task == TASKS - 1 and attempt == 0:
                time.sleep(SLOW_S)
            yield batch

    rows = spark.range(0, ROWS, 1, TASKS).mapInArrow(slow, "id LONG")
    writer = rows.selectExpr("CAST(id AS STRING) AS value").write.format("sparkmirror").mode("append")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", topic)
    writer.option("transactional.id.prefix", topic).save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
