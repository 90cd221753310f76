"""What people are told about two records that should be the same: which parts differ, with short previews."""

from collections.abc import Iterator, Sequence

from sparkmirror.batches.record_body import RecordBody, read_body
from sparkmirror.batches.records import naming_offset
from sparkmirror.verify.records import Record

_SHOWN_BYTES = 40


def are_related(source: Record, target: Record, *, compacted: bool) -> bool:
    """Whether one may be an altered copy of the other, not another record altogether.

    Of a compacted topic records of one key are plenty: there the time must be the same as well.
    """
    ours, theirs = _body(source), _body(target)
    same_key = ours.key == theirs.key and ours.key is not None
    same_time = source.timestamp == target.timestamp and source.timestamp != 0
    if compacted:
        return same_key and same_time
    return same_key or same_time or (ours.value == theirs.value and bool(ours.value))


def changes(source: Record, target: Record) -> Iterator[tuple[str, str]]:
    """Each part that differs, by name, and what became of it."""
    before, after = _body(source), _body(target)
    if before.key != after.key:
        yield "key", _became(before.key, after.key)
    if before.value != after.value:
        yield "value", _became(before.value, after.value)
    if before.headers != after.headers:
        yield "headers", f"{_headers(before.headers)} became {_headers(after.headers)}"
    if source.timestamp != target.timestamp:
        yield "timestamp", f"{source.timestamp} became {target.timestamp}"


def preview(record: Record) -> str:
    body = _body(record)
    headers = f", headers {_headers(body.headers)}" if body.headers else ""
    return f"key {_shown(body.key)}, value {_shown(body.value)}{headers}, timestamp {record.timestamp}"


def _body(record: Record) -> RecordBody:
    with naming_offset(record.offset):
        return read_body(record.body)


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
