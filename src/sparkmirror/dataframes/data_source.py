"""The data source `sparkmirror` of `spark.read` and `spark.readStream`.

Spark imports it in every session that looks for any format in Python, so everything else is loaded by the
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class KafkaDataSource(DataSource):
    """Reads Kafka with the options of Spark's own Kafka source; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "sparkmirror"

    def schema(self) -> StructType:
        from sparkmirror.dataframes.read_options import read_options  # noqa: PLC0415 - see above
        from sparkmirror.dataframes.schema import source_schema  # noqa: PLC0415

        return source_schema(includes_headers=read_options(self.options).includes_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from sparkmirror.dataframes.readers import batch_reader  # noqa: PLC0415

        return batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        from sparkmirror.dataframes.readers import stream_reader  # noqa: PLC0415

        return stream_reader(self.options, schema)
