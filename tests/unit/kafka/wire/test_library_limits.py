"""Each request that the Kafka library encodes: every field below, at and above the limits of its type.

The bytes are compared with those of a second encoder, which follows the schema alone.
"""

import ast
import importlib
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import sparkmirror
from sparkmirror.kafka.wire import primitives as wire

INTEGERS: Final = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}
INT16_MAX: Final = 2**15 - 1


def limits(kind: str) -> tuple[int, int]:
    bits = 8 * struct.calcsize(">" + INTEGERS[kind])
    return (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Shape(NamedTuple):
    """The values of all fields of a message: integers are the least or the largest that their type has.

    Strings and bytes have `size` characters, and arrays so many `items`.
    """

    is_largest: bool
    size: int
    items: int


SHAPES: Final = (
    Shape(is_largest=False, size=0, items=0),
    Shape(is_largest=False, size=1, items=1),
    *(Shape(is_largest=True, size=size, items=2) for size in (126, 127, 128)),
    *(Shape(is_largest=True, size=size, items=1) for size in (16382, 16383, 16384, INT16_MAX)),
)
COUNTS: Final = (126, 127, 128)


def requests() -> Iterator[type[Any]]:
    """Find the classes of requests that the product imports from the library."""
    found: dict[str, type[Any]] = {}
    for file in Path(sparkmirror.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka.protocol"):
                library = importlib.import_module(node.module or "")
                names = [each.name for each in node.names if each.name.endswith("Request")]
                found.update({name: getattr(library, name) for name in names})
    yield from (found[name] for name in sorted(found))


REQUESTS: Final = tuple(requests())


def versions_of(request: type[Any]) -> range:
    return range(request.min_version, request.max_version + 1)


def filled(fields: Iterable[Any], shape: Shape, version: int) -> dict[str, Any]:
    return {field.name: value_of(field, shape, version) for field in fields}


def value_of(field: Any, shape: Shape, version: int) -> Any:
    if field.is_struct_array():
        return [
            field.data_class(**filled(field.untagged_fields(version), shape, version))
            for _ in range(shape.items)
        ]
    if field.is_array():
        return [simple(field.array_of.type_str, shape)] * shape.items
    assert not field.is_struct(), "no request has a structure that is no array"
    return simple(field.type_str, shape)


def simple(kind: str, shape: Shape) -> Any:
    if kind in INTEGERS:
        return limits(kind)[shape.is_largest]
    values: Mapping[str, Any] = {
        "bool": shape.is_largest,
        "string": "x" * shape.size,
        "bytes": b"y" * shape.size,
        "records": b"z" * shape.size,
        "uuid": uuid.UUID(int=2**128 - 1 if shape.is_largest else 1),
        "float64": 1.7976931348623157e308 if shape.is_largest else -0.0,
    }
    return values[kind]


def encoded(fields: Iterable[Any], message: Any, version: int, *, compact: bool) -> bytes:
    parts = [encoded_field(field, getattr(message, field.name), version, compact=compact) for field in fields]
    return b"".join(parts) + (b"\x00" if compact else b"")


def encoded_field(field: Any, value: Any, version: int, *, compact: bool) -> bytes:
    if field.is_struct_array():
        fields = field.untagged_fields(version)
        parts = [encoded(fields, each, version, compact=compact) for each in value]
        return wire.array_size(len(value), compact=compact) + b"".join(parts)
    if field.is_array():
        parts = [encoded_simple(field.array_of.type_str, each, compact=compact) for each in value]
        return wire.array_size(len(value), compact=compact) + b"".join(parts)
    return encoded_simple(field.type_str, value, compact=compact)


def encoded_simple(kind: str, value: Any, *, compact: bool) -> bytes:
    if kind in INTEGERS:
        return struct.pack(">" + INTEGERS[kind], value)
    if kind == "string":
        return wire.string(value, compact=compact)
    if kind in ("bytes", "records"):
        return wire.array_size(len(value), compact=compact) + bytes(value)
    if kind == "uuid":
        return bytes(value.bytes)
    return struct.pack({"bool": ">?", "float64": ">d"}[kind], value)


@pytest.mark.parametrize("request_class", REQUESTS, ids=lambda each: each.__name__)
def test_fields_at_their_limits_are_encoded_as_the_schema_says(request_class: type[Any]) -> None:
    for version in versions_of(request_class):
        fields = request_class._struct.untagged_fields(version)
        shapes = (
            *SHAPES,
            *(Shape(is_largest=True, size=1, items=count) for count in COUNTS if nests(fields) < 2),
        )
        for shape in shapes:
            message = request_class(**filled(fields, shape, version))
            compact = request_class.flexible_version_q(version)
            expected = encoded(fields, message, version, compact=compact)
            assert bytes(message.encode(version=version)) == expected, (version, shape)


def nests(fields: Iterable[Any]) -> int:
    """Return how deep arrays are within arrays."""
    arrays = [field for field in fields if field.is_array()]
    return max(
        (1 + nests(each.fields.values() if each.is_struct_array() else ()) for each in arrays), default=0
    )


@pytest.mark.parametrize("request_class", REQUESTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("beyond", [-1, 1])
def test_no_field_is_cut(request_class: type[Any], beyond: int) -> None:
    """A number beyond its type's limits is refused, and a string that 16 bits can't count."""
    shape = Shape(is_largest=False, size=1, items=1)
    for version in versions_of(request_class):
        fields = request_class._struct.untagged_fields(version)
        compact = request_class.flexible_version_q(version)
        message = request_class(**filled(fields, shape, version))
        for holder, field in leaves(message, fields, version):
            over: int | str
            if field.type_str in INTEGERS:
                over = limits(field.type_str)[beyond > 0] + beyond
            elif field.type_str == "string" and not compact and beyond > 0:
                over = "x" * (INT16_MAX + 1)
            else:
                continue
            before = getattr(holder, field.name)
            setattr(holder, field.name, over)
            with pytest.raises((struct.error, ValueError, OverflowError)):
                message.encode(version=version)
            setattr(holder, field.name, before)


def leaves(message: Any, fields: Iterable[Any], version: int) -> Iterator[tuple[Any, Any]]:
    """Each field that is no array, with the part of the message that has it."""
    for field in fields:
        if field.is_struct_array():
            (item,) = getattr(message, field.name)
            yield from leaves(item, field.untagged_fields(version), version)
        elif not field.is_array():
            yield message, field
