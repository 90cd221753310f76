"""Empties fields of a response that are null though Kafka's schema allows no null there.

The Kafka library reads them as None. No broker sends them, but whatever else listens on a port may.
"""

from collections.abc import Iterable
from typing import Any


def without_nulls(response: Any, version: int) -> Any:
    """The response, changed in place."""
    _fill(response, response._struct.untagged_fields(version), version)  # noqa: SLF001 - its schema is nowhere else
    return response


def _fill(message: Any, fields: Iterable[Any], version: int) -> None:
    for field in fields:
        value = getattr(message, field.name)
        if value is None and not field.nullable_for_version_q(version):
            setattr(message, field.name, _empty(field))
        elif field.is_struct_array():
            inner = [each for each in field.untagged_fields(version) if _may_be_null(each)]
            for item in (value or ()) if inner else ():
                _fill(item, inner, version)
        elif field.is_array() and field.type_str == "[]string" and value and None in value:
            setattr(message, field.name, [text or "" for text in value])


def _may_be_null(field: Any) -> bool:
    return field.is_array() or field.type_str in ("string", "bytes", "records")


def _empty(field: Any) -> Any:
    if field.is_array():
        return []
    return "" if field.type_str == "string" else b"" if field.type_str in ("bytes", "records") else None
