"""What people are told about two records that should be the same: which parts differ, with short previews."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sparkmirror.domain.comparison_side import Record
from sparkmirror.domain.records import read_varint

_SHOWN_BYTES = 40


class Parts(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def parts_of(record: Record) -> Parts:
    """Layout: Kafka's `DefaultRecord` (KIP-98), from the key's length on."""
    data = memoryview(record.body)
    key, at = _nullable(data, 0)
    value, at = _nullable(data, at)
    count, at = read_varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _nullable(data, at)
        content, at = _nullable(data, at)
        headers.append((name or b"", content))
    return Parts(key, value, tuple(headers))


def key_of(record: Record) -> bytes | None:
    return _nullable(memoryview(record.body), 0)[0]


def is_tombstone(record: Record) -> bool:
    data = memoryview(record.body)
    _, at = _nullable(data, 0)
    return read_varint(data, at)[0] < 0


def are_related(source: Record, target: Record, *, compacted: bool) -> bool:
    """Whether one may be an altered copy of the other, not another record altogether.

    Of a compacted topic records of one key are plenty: there the time must be the same as well.
    """
    ours, theirs = parts_of(source), parts_of(target)
    same_key = ours.key == theirs.key and ours.key is not None
    same_time = source.timestamp == target.timestamp and source.timestamp != 0
    if compacted:
        return same_key and same_time
    return same_key or same_time or (ours.value == theirs.value and bool(ours.value))


def changes(source: Record, target: Record) -> Iterator[tuple[str, str]]:
    """Each part that differs, by name, and what became of it."""
    before, after = parts_of(source), parts_of(target)
    if before.key != after.key:
        yield "key", _became(before.key, after.key)
    if before.value != after.value:
        yield "value", _became(before.value, after.value)
    if before.headers != after.headers:
        yield "headers", f"{_headers(before.headers)} became {_headers(after.headers)}"
    if source.timestamp != target.timestamp:
        yield "timestamp", f"{source.timestamp} became {target.timestamp}"


def preview(record: Record) -> str:
    parts = parts_of(record)
    headers = f", headers {_headers(parts.headers)}" if parts.headers else ""
    return f"key {_shown(parts.key)}, value {_shown(parts.value)}{headers}, timestamp {record.timestamp}"


def _nullable(data: memoryview, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    return (None, at) if size < 0 else (bytes(data[at : at + size]), at + size)


def _became(before: bytes | None, after: bytes | None) -> str:
    return f"{_shown(before)} became {_shown(after)}"


def _headers(headers: Sequence[tuple[bytes, bytes | None]]) -> str:
    shown = ", ".join(f"{_text(name)}={_shown(value)}" for name, value in headers[:3])
    return f"[{shown}{', …' if len(headers) > 3 else ''}]"


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    cut = f"… ({len(data)} bytes)" if len(data) > _SHOWN_BYTES else ""
    return f"{_text(data[:_SHOWN_BYTES])}{cut}"


def _text(data: bytes) -> str:
    """As it reads if it's text, else in Python's words for bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return repr(data)
    return repr(text)
