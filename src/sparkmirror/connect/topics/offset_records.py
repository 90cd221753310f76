"""Writes and folds the records of Connect's offsets topic, and checks the offsets that users set (KIP-875).

Offsets of any connector, in the connector's own shape; MirrorMaker's positions are in `connect_records`.

Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final, NamedTuple, TypeGuard

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.connect import ConnectError, ConnectorOffset
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.storage.connect_json import in_hash_order, java_text, read_json, write_json

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

    As in Java, partitions are found by a key's content, and offsets by its bytes: under a key that another
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
    """Those of partitions that have copied something.

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

    Raises ConnectError with the connector's own message (`alterOffsets`).
    """
    kind = connector_class.rpartition(".")[2].removesuffix("Connector")
    check = _CHECKS.get(kind)
    if check is None:
        raise _invalid(f"{connector_class} doesn't support external modification of offsets")
    chosen: dict[bytes, ConnectorOffset] = {}
    for offset in offsets:
        _require_primitives(offset.partition)
        _require_primitives(offset.offset or {})
        normal = replace(offset, partition=in_hash_order(offset.partition))
        if offset.offset is not None:
            normal = replace(normal, offset=in_hash_order(offset.offset))
        chosen[write_json(normal.partition)] = normal
    for offset in chosen.values():
        if offset.offset is not None:
            check(offset.partition, offset.offset)
    return list(chosen.values())


def _check_source(partition: Fields, offset: Fields) -> None:
    _require_text(partition, "cluster")
    _require_text(partition, "topic")
    _require_partition(partition)
    if _require_offset(partition, offset) < 0:
        raise _invalid_offset(partition, offset, ", which cannot be negative")


def _check_checkpoint(partition: Fields, offset: Fields) -> None:
    _require_text(partition, "group")
    _require_text(partition, "topic")
    _require_partition(partition)
    _require_zero(partition, offset)


def _check_heartbeat(partition: Fields, offset: Fields) -> None:
    _require_text(partition, "sourceClusterAlias")
    _require_text(partition, "targetClusterAlias")
    _require_zero(partition, offset)


_CHECKS: Final[Mapping[str, Callable[[Fields, Fields], None]]] = {
    "MirrorSource": _check_source,
    "MirrorCheckpoint": _check_checkpoint,
    "MirrorHeartbeat": _check_heartbeat,
}


def _require_primitives(fields: Fields) -> None:
    for name, value in fields.items():
        kind = _not_primitive(value)
        if kind is not None:
            raise _invalid(
                f"Offsets may only contain primitive types as values, but field {name} contains {kind}"
            )


def _not_primitive(value: object) -> str | None:
    """Java's name of a type that Connect does not accept."""
    if isinstance(value, Mapping):
        return "MAP"
    if isinstance(value, list | tuple):
        return "ARRAY"
    if isinstance(value, int) and not _LONG_MIN <= value <= _LONG_MAX:
        return "class java.math.BigInteger"
    return None


def _require_text(partition: Fields, key: str) -> None:
    _require_key(partition, key)
    if not isinstance(partition[key], str):
        raise _invalid_partition(partition, key, "which must be a string")


def _require_partition(partition: Fields) -> None:
    _require_key(partition, "partition")
    number = partition["partition"]
    if not _is_integer(number) or number > _INT_MAX:
        raise _invalid_partition(partition, "partition", "which must be an integer")
    if number < 0:
        raise _invalid_partition(partition, "partition", "which cannot be negative")


def _require_zero(partition: Fields, offset: Fields) -> None:
    if _require_offset(partition, offset) != 0:
        raise _invalid_offset(partition, offset, "; the only accepted value is 0")


def _require_offset(partition: Fields, offset: Fields) -> int:
    if "offset" not in offset:
        raise _invalid(
            f"Source offset {java_text(offset)} for source partition {java_text(partition)} is missing the"
            " 'offset' key, which is required"
        )
    number = offset["offset"]
    if not _is_integer(number):
        raise _invalid_offset(partition, offset, ", which must be an integer")
    return number


def _require_key(partition: Fields, key: str) -> None:
    if key not in partition:
        raise _invalid(
            f"Source partition {java_text(partition)} is missing the '{key}' key, which is required"
        )


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid_partition(partition: Fields, key: str, why: str) -> ConnectError:
    value = java_text(partition[key])
    return _invalid(
        f"Source partition {java_text(partition)} has an invalid value {value} for the '{key}' key, {why}"
    )


def _invalid_offset(partition: Fields, offset: Fields, why: str) -> ConnectError:
    value = java_text(offset["offset"])
    return _invalid(
        f"Source offset {java_text(offset)} for source partition {java_text(partition)} has an invalid value"
        f" {value} for the 'offset' key{why}"
    )


def _invalid(message: str) -> ConnectError:
    """Connect reports a connector's refusal as an internal error."""
    return ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, message)
