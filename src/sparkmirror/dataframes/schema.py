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
    TimestampNTZType,
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
        if not _is_alike(field.dataType, known):
            reason = f"is {known.simpleString()}, not {field.dataType.simpleString()}"
            raise ConfigError("schema", field.name, reason)


_TEXT: Final = StringType(), BinaryType()
_TIMES: Final = TimestampType(), TimestampNTZType()
_WRITTEN: Final[dict[str, tuple[DataType, ...]]] = {
    "key": _TEXT,
    "value": _TEXT,
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "timestamp": _TIMES,
    _HEADERS: (ArrayType(_HEADER),),
    "offset": (LongType(),),
    "timestampType": (IntegerType(),),
}
"""The last two are not written: they are there so that a frame that was read can be written."""


def check_sink_schema(schema: StructType, *, has_topic: bool) -> None:
    """Check that rows of this schema can be written. Raises ConfigError."""
    for field in schema.fields:
        types = _WRITTEN.get(field.name)
        if types is None:
            raise ConfigError(
                "schema", field.name, f"is no column of the sink; there are {', '.join(_WRITTEN)}"
            )
        if not any(_is_alike(field.dataType, each) for each in types):
            expected = " or ".join(each.simpleString() for each in types)
            raise ConfigError("schema", field.name, f"is {expected}, not {field.dataType.simpleString()}")
    if "value" not in schema.names:
        raise ConfigError("schema", None, "a column value is needed")
    if "topic" not in schema.names and not has_topic:
        raise ConfigError("topic", None, "is needed as an option, or as a column of the rows")


def _is_alike(found: DataType, expected: DataType) -> bool:
    """Whether the types are the same, but for what may be null."""
    return found.simpleString() == expected.simpleString()
