"""The columns of data frames that read, and checks of schemas that users give."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkmirror.domain.errors import ConfigError

_HEADERS: Final = "headers"
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_COLUMNS: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    _HEADERS: ArrayType(_HEADER),
}


def source_schema(*, includes_headers: bool) -> StructType:
    """The columns of Spark's Kafka source."""
    names = [name for name in _COLUMNS if name != _HEADERS or includes_headers]
    return StructType([StructField(name, _COLUMNS[name]) for name in names])


def check_source_schema(schema: StructType) -> None:
    """Check that a schema has some of the columns with their types. Raises ConfigError."""
    if not schema.fields:
        raise ConfigError("schema", None, f"names no column; there are {', '.join(_COLUMNS)}")
    for field in schema.fields:
        known = _COLUMNS.get(field.name)
        if known is None:
            raise ConfigError("schema", field.name, f"is no column; there are {', '.join(_COLUMNS)}")
        if field.dataType != known:
            reason = f"is {known.simpleString()}, not {field.dataType.simpleString()}"
            raise ConfigError("schema", field.name, reason)
