"""Writes and folds the records of Connect's offsets topic, and checks the offsets that users set (KIP-875).

Offsets of any connector, in the connector's own shape; MirrorMaker's positions are in `storage/positions.py`.

Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.connect import ConnectError, ConnectorOffset
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.quantities import counted
from sparkmirror.storage.connect_json import in_hash_order, read_json, write_json

_INT_MAX: Final = 2**31 - 1
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_NOTHING_COPIED: Final = {"offset": -1}

Fields = Mapping[str, object]


class OffsetKey(NamedTuple):
    connector: str
    partition: Fields


# records


def offset_key(connector: str, partition: Fields) -> bytes:
    """Connect looks an offset up by the key's raw bytes: the fields are in the order of Java's HashMap."""
    return write_json([connector, in_hash_order(partition)])


def offset_record(connector: str, offset: ConnectorOffset) -> LogRecord:
    """The key chooses the topic's partition."""
    value = None if offset.offset is None else write_json(in_hash_order(offset.offset))
    return LogRecord(offset_key(connector, offset.partition), value, partition=None)


def parse_offset_key(key: bytes | None) -> OffsetKey:
    """Raises MalformedRecordError for records that Connect ignores."""
    match read_json(key):
        case [str(connector), dict() as partition]:
            return OffsetKey(connector, partition)
        case _:
            raise MalformedRecordError("it is no connector's name and source partition")


class OffsetFold:
    """Applies the records of an offsets topic, in order within each key; keeps those of one connector.

    Partitions are found by a key's content, and offsets by its bytes, as in Java: under a key that another
    tool wrote with another order of fields, a partition has no offset.
    """

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._partitions: dict[bytes, Fields] = {}
        self._values: dict[bytes, bytes] = {}

    def take(self, record: LogRecord) -> None:
        """Raises MalformedRecordError, and changes nothing."""
        key = parse_offset_key(record.key)
        if key.connector != self._connector:
            return
        canonical = offset_key(*key)
        raw = record.key or b""
        if record.value is None:
            self._partitions.pop(canonical, None)
            self._values.pop(raw, None)
        else:
            self._partitions[canonical] = key.partition
            self._values[raw] = record.value

    def offsets(self) -> Sequence[ConnectorOffset]:
        """Sorted by topic and partition, where there are such fields; None where a value can't be read."""
        found = [
            ConnectorOffset(partition, _offset(self._values.get(key)))
            for key, partition in self._partitions.items()
        ]
        return sorted(found, key=lambda offset: _sort_key(offset.partition))


def copied_offsets(offsets: Iterable[ConnectorOffset]) -> Sequence[ConnectorOffset]:
    """Return the offsets of partitions that have copied something.

    A mirror stores its producer id before its first record, with offset -1; Java stores nothing until then.
    """
    return [offset for offset in offsets if offset.offset != _NOTHING_COPIED]


def _offset(value: bytes | None) -> Fields | None:
    try:
        offset = read_json(value)
    except MalformedRecordError:
        return None
    return offset if isinstance(offset, dict) else None


def _sort_key(partition: Fields) -> tuple[str, int, bytes]:
    number = partition.get("partition")
    return str(partition.get("topic")), number if isinstance(number, int) else -1, write_json(partition)


# requests of users


def checked_offsets(connector_class: str, offsets: Iterable[ConnectorOffset]) -> Sequence[ConnectorOffset]:
    """Return the offsets to write: the last one for each partition; null is allowed for any partition.

    Raises ConnectError for offsets that the connector could not read.
    """
    kind = connector_class.rpartition(".")[2].removesuffix("Connector")
    if kind not in _FIELDS:
        raise _invalid(f"{connector_class} doesn't support external modification of offsets")
    chosen: dict[bytes, ConnectorOffset] = {}
    for offset in offsets:
        _require_primitives(offset.partition)
        _require_primitives(offset.offset or {})
        normal = replace(offset, partition=in_hash_order(offset.partition))
        if offset.offset is not None:
            _require_partition(offset.partition, _FIELDS[kind])
            _require_offset(offset.offset, _LONG_MAX if kind == "MirrorSource" else 0)
            normal = replace(normal, offset=in_hash_order(offset.offset))
        chosen[write_json(normal.partition)] = normal
    return list(chosen.values())


_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "MirrorSource": ("cluster", "topic", "partition"),
    "MirrorCheckpoint": ("group", "topic", "partition"),
    "MirrorHeartbeat": ("sourceClusterAlias", "targetClusterAlias"),
}
"""The fields of each connector's partitions."""


def _require_primitives(fields: Fields) -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping | list) or (
            isinstance(value, int) and not _LONG_MIN <= value <= _LONG_MAX
        ):
            raise _invalid(f'"{name}" may be a string, a boolean or a number of 64 bits')


def _require_partition(partition: Fields, fields: Sequence[str]) -> None:
    for name in fields:
        value = partition.get(name)
        if name == "partition" and not _is_number(value, _INT_MAX):
            raise _invalid(f'A partition needs "partition", a number from 0 to {_INT_MAX}')
        if name != "partition" and not isinstance(value, str):
            raise _invalid(f'A partition of this connector needs "{name}", a string')


def _require_offset(offset: Fields, most: int) -> None:
    if not _is_number(offset.get("offset"), most):
        allowed = f"from 0 to {most}" if most else "0, the only one that it accepts"
        raise _invalid(f'An offset of this connector needs "offset", a number: {allowed}')


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _invalid(message: str) -> ConnectError:
    return ConnectError(HTTPStatus.BAD_REQUEST, message)


def set_back(known: Iterable[ConnectorOffset], altered: Iterable[ConnectorOffset]) -> str | None:
    """Say how many offsets a mirror copies a second time; None where it copies none again."""
    before = {_identity(each): _number(each.offset) for each in known}
    counts = {_identity(each): before.get(_identity(each), -1) - _number(each.offset) for each in altered}
    behind = [count for count in counts.values() if count > 0]
    if not behind:
        return None
    return (
        f"offsets were set back by {sum(behind):,} in {counted(len(behind), 'partition')}: "
        "what is behind them and still at the source is copied a second time"
    )


def _identity(offset: ConnectorOffset) -> bytes:
    return write_json(in_hash_order(offset.partition))


def _number(offset: Mapping[str, object] | None) -> int:
    """The last copied offset, -1 for none."""
    number = -1 if offset is None else offset.get("offset", -1)
    return number if isinstance(number, int) else -1
