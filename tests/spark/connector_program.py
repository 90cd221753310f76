"""Reads by each format with each set of options, and prints what came; `check_spark_connector` compares."""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

ROW = (
    "hex(key) AS key",
    "hex(value) AS value",
    "topic",
    "partition",
    "offset",
    "CAST(timestamp AS STRING) AS timestamp",
    "timestampType",
)


def main(jars: str, servers: str, table: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for number, case in enumerate(json.loads(table)):
        for kind in ("kafka", "sparkmirror"):
            found = outcome(spark, kind, servers, case, f"case_{number}_{kind}")
            sys.stdout.write(f"OUTCOME {json.dumps([number, kind, found])}\n")
            sys.stdout.flush()
    spark.stop()


def outcome(spark: SparkSession, kind: str, servers: str, case: dict[str, Any], name: str) -> Any:
    options = {"kafka.bootstrap.servers": servers, **case["options"]}
    options = {key: value for key, value in options.items() if value is not None}
    try:
        if not case["streaming"]:
            return rows(spark.read.format(kind).options(**options).load())
        frame = spark.readStream.format(kind).options(**options).load()
        query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        query.awaitTermination()
        return rows(spark.table(name))
    except PySparkException as error:
        return f"refused: {str(error)[-2000:]}"
    except Exception as error:  # noqa: BLE001 - Java's errors have many classes
        return f"refused: {str(error)[:2000]}"


def rows(frame: DataFrame) -> list[Any]:
    headers = ["to_json(headers) AS headers"] if "headers" in frame.columns else []
    found = frame.selectExpr(*ROW, *headers).orderBy("topic", "partition", "offset").collect()
    return [list(row) for row in found]


if __name__ == "__main__":
    main(*sys.argv[1:])
