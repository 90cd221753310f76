"""Writes JSON as Kafka Connect's own topics have it, byte for byte as its JsonConverter without schemas.

Positions are looked up by the raw bytes of their keys, so the order of fields and the escapes count.
"""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NoReturn

from sparkmirror.domain.errors import MalformedRecordError

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
_TABLE_SIZE_MIN: Final = 16
_LOAD_MAX: Final = 0.75
_PLAIN_MIN: Final = 1e-3
_PLAIN_END: Final = 1e7


def read_json(data: bytes | None) -> object:
    """Parse a value; None for a tombstone, and as in Java for an empty value. Raises MalformedRecordError."""
    try:
        return json.loads(data, parse_constant=_refuse) if data and data.strip() else None
    except (ValueError, RecursionError) as error:
        raise MalformedRecordError(f"it is no JSON: {error}") from error


def write_json(value: object) -> bytes:
    """Fields in the order of their mapping."""
    return _written(value).encode()


def quoted(text: str) -> str:
    """Quote as Jackson writes into UTF-8: characters beyond the basic plane as two escaped surrogates."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def in_hash_order(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields in the order in which a java.util.HashMap that they were put into gives them.

    Exact up to seven keys in one bucket; more of them Java would keep as a tree.
    """
    size = _TABLE_SIZE_MIN
    while len(fields) > _LOAD_MAX * size:
        size *= 2
    return {key: fields[key] for key in sorted(fields, key=lambda key: _bucket(key, size))}


def java_text(value: object) -> str:
    """A value as Java's `String.valueOf` writes it; a mapping with its fields in their order."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={java_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(java_text, value)) + "]"
    return _scalar(value)


def _written(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quoted(key)}:{_written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(_written, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _double(value)
        case _:
            return str(value)


def _double(value: float) -> str:
    """Double.toString since Java 19: plain from 0.001 up to ten million, else with an exponent.

    The converter, which takes decimals for exact, knows no negative zero.
    """
    if value == 0:
        return "0.0"
    if _PLAIN_MIN <= abs(value) < _PLAIN_END:
        return f"{Decimal(repr(value)):f}"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{int(exponent) + len(digits) - 1}"


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))


def _bucket(key: str, size: int) -> int:
    units = key.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(units), 2):
        hashed = (hashed * 31 + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & (size - 1)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number in JSON")
