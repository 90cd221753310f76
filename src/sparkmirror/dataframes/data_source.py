"""The format `sparkmirror` of `spark.read`, `spark.readStream`, `.write` and `.writeStream`.

Spark imports it in every session that looks for any format in Python, so everything else is loaded by the
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class KafkaDataSource(DataSource):
    """Reads and writes Kafka with the options of Spark's own connector; see docs/spark.md."""

    _is_unpickled = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._is_unpickled = True

    @classmethod
    def name(cls) -> str:
        return "sparkmirror"

    def schema(self) -> StructType:
        from sparkmirror.dataframes.read_options import read_options  # noqa: PLC0415 - see above
        from sparkmirror.dataframes.schema import source_schema  # noqa: PLC0415

        return source_schema(includes_headers=read_options(self.options).includes_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from sparkmirror.dataframes.query_readers import batch_reader  # noqa: PLC0415

        return batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        from sparkmirror.dataframes.query_readers import stream_reader  # noqa: PLC0415

        return stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from sparkmirror.dataframes.query_writers import batch_writer  # noqa: PLC0415

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, ARG002
        """Spark plans a micro-batch with a new source, and commits it with one that it gets pickled."""
        from sparkmirror.dataframes.query_writers import stream_writer  # noqa: PLC0415

        return stream_writer(self.options, schema, plans=not self._is_unpickled)
