"""Reads and writes positions in Connect's offsets topic: each partition's last replicated upstream offset.

Java MM2 and this project can continue from each other's positions. Java finds positions by the raw bytes of
the key, so the order of fields and the escapes are those that its JSON writer (Jackson) produces for
MirrorSourceConnector. Record headers, which Java ignores, hold what is needed to continue exactly: see
`ProducerState` and `LogIdentity`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.log_records import Headers, LogRecord, compact_json, parsed_json
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import (
    UNKNOWN_LOGS,
    Alias,
    ConnectorName,
    LogIdentity,
    TopicPartition,
    decode_topic_id,
    encode_topic_id,
)
from sparkmirror.kafka.data.partition_offsets import await_stable
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.storage.connect_json import quoted

_PRODUCER = "sparkmirror.producer"
_LOGS = "sparkmirror.logs"
_RUN = "sparkmirror.run"
_TRANSLATED = "sparkmirror.translated"
NOTHING_REPLICATED = -1
"""Java's value for "no position", too."""


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """The partition, and its connector, that a position belongs to."""

    connector: str
    cluster_alias: str
    topic: str
    partition: int


def source_position_key(source: SourcePartition) -> bytes:
    """The key under which Connect finds a MirrorSourceConnector's position."""
    connector, cluster, topic = map(quoted, (source.connector, source.cluster_alias, source.topic))
    return f'[{connector},{{"cluster":{cluster},"partition":{source.partition},"topic":{topic}}}]'.encode()


def source_position_value(offset: int) -> bytes:
    """The value for a last replicated offset; to forget a position, Connect writes null instead."""
    return b'{"offset":%d}' % offset


def parse_source_position_key(key: bytes | None) -> SourcePartition | None:
    """Parse a key with any order of fields; None for a malformed one or one of another connector."""
    match parsed_json(key):
        case [
            str(connector),
            {"cluster": str(cluster), "topic": str(topic), "partition": int(partition)},
        ] if not isinstance(partition, bool):
            return SourcePartition(connector, cluster, topic, partition)
        case _:
            return None


def parse_source_position_value(value: bytes | None) -> int | None:
    """The last replicated offset; None when it was forgotten, never set, or the value is malformed."""
    match parsed_json(value):
        case {"offset": int(offset)} if not isinstance(offset, bool) and offset >= 0:
            return offset
        case _:
            return None


class Position(NamedTuple):
    """`offset` is the last replicated upstream one; `producer` is None where Java MM2 wrote the record.

    `run` has the last records up to that offset: the next task continues the run that the offset syncs of the
    one before cover. `is_translated` is set where offsets could be preserved no more, and others follow.
    """

    offset: int
    producer: ProducerState | None = None
    logs: LogIdentity = UNKNOWN_LOGS
    run: Run | None = None
    is_translated: bool = False

    @property
    def is_own(self) -> bool:
        """Whether this mirror has stored it, and not Java's."""
        return self.producer is not None or self.logs != UNKNOWN_LOGS


def position_key(connector: ConnectorName, source: Alias, partition: TopicPartition) -> bytes:
    return source_position_key(SourcePartition(connector, source, *partition))


def position_record(
    connector: ConnectorName, source: Alias, partition: TopicPartition, position: Position
) -> LogRecord:
    key = position_key(connector, source, partition)
    value = source_position_value(position.offset)
    return LogRecord(key, value, partition=None, headers=_headers(position))


def forgetting(connector: ConnectorName, source: Alias, partition: TopicPartition) -> LogRecord:
    """Make the record that drops a position, as Connect's reset of offsets does."""
    return LogRecord(position_key(connector, source, partition), None, partition=None)


class StoredPositions(NamedTuple):
    """`newest_ms` is when the last one was stored, in epoch ms; None without any. `reset` were forgotten."""

    of: Mapping[TopicPartition, Position]
    newest_ms: int | None
    reset: Collection[TopicPartition] = ()


def read_positions(
    settings: ConnectionSettings,
    topic: str,
    connector: ConnectorName,
    source: Alias,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, Position]:
    """The newest position of each partition that has one, found by raw key bytes as Connect does.

    Waits for open transactions to end; only committed records count. Raises KafkaError.
    """
    return read_stored_positions(settings, topic, connector, source, partitions).of


def read_stored_positions(
    settings: ConnectionSettings,
    topic: str,
    connector: ConnectorName,
    source: Alias,
    partitions: Collection[TopicPartition],
) -> StoredPositions:
    """Read positions as `read_positions` does, with the time of the last one."""
    wanted = {position_key(connector, source, partition): partition for partition in partitions}
    return _latest(settings, topic, wanted.get)


def read_all_positions(
    settings: ConnectionSettings, topic: str, connector: ConnectorName, source: Alias
) -> Mapping[TopicPartition, Position]:
    """Read the positions of every partition that the connector has ever copied."""

    def of_connector(key: bytes) -> TopicPartition | None:
        found = parse_source_position_key(key)
        belongs = found is not None and (found.connector, found.cluster_alias) == (connector, source)
        return TopicPartition(found.topic, found.partition) if found is not None and belongs else None

    return _latest(settings, topic, of_connector).of


def topics_with_positions(
    settings: ConnectionSettings,
    topic: str,
    connector: ConnectorName,
    source: Alias,
    among: Collection[str],
) -> Collection[str]:
    """Find which of these source topics the connector has positions in; none before it has run."""
    nothing: Mapping[TopicPartition, Position] = {}
    found = unless_missing(lambda: read_all_positions(settings, topic, connector, source), nothing)
    return {partition.topic for partition in found} & set(among)


def connectors_with_positions(settings: ConnectionSettings, topic: str, source: Alias) -> set[str]:
    """The names of all connectors of which positions in this source are stored. Raises KafkaError."""
    found: dict[str, set[bytes]] = {}
    for record in read_topic(settings, topic, read_committed=True):
        place = parse_source_position_key(record.key)
        if place is None or place.cluster_alias != source:
            continue
        held = found.setdefault(place.connector, set())
        if parse_source_position_value(record.value) is None:
            held.discard(record.key or b"")
        else:
            held.add(record.key or b"")
    return {connector for connector, held in found.items() if held}


def recorded_positions(
    records: Iterable[LogRecord], source: Alias
) -> Iterator[tuple[str, TopicPartition, Position | None, int]]:
    """List a connector's recorded positions in this source, with times in epoch ms; None forgets one."""
    for record in records:
        place = parse_source_position_key(record.key)
        if place is not None and place.cluster_alias == source:
            partition = TopicPartition(place.topic, place.partition)
            yield place.connector, partition, _position(record), record.timestamp_ms or 0


def _latest(
    settings: ConnectionSettings, topic: str, partition_of: Callable[[bytes], TopicPartition | None]
) -> StoredPositions:
    positions: dict[TopicPartition, Position] = {}
    known: set[TopicPartition] = set()
    newest_ms: int | None = None
    await_stable(settings, topic)
    for record in read_topic(settings, topic, read_committed=True):
        partition = partition_of(record.key or b"")
        if partition is None:
            continue
        known.add(partition)
        position = _position(record)
        if position is None:
            positions.pop(partition, None)
        else:
            positions[partition] = position
            newest_ms = max(newest_ms or 0, record.timestamp_ms or 0)
    return StoredPositions(positions, newest_ms, known - positions.keys())


def _position(record: LogRecord) -> Position | None:
    offset = parse_source_position_value(record.value)
    producer, logs = _producer(record.headers), _logs(record.headers)
    is_translated = _header(record.headers, _TRANSLATED) is True
    if offset is None:
        # In ours it means that a partition starts with its first record, in Java's that it has no position.
        knows = producer is not None or logs != UNKNOWN_LOGS
        is_ours = knows and record.value == source_position_value(NOTHING_REPLICATED)
        known = Position(NOTHING_REPLICATED, producer, logs, is_translated=is_translated)
        return known if is_ours else None
    return Position(offset, producer, logs, _run(record.headers, offset), is_translated)


def _headers(position: Position) -> Headers:
    headers: Headers = ()
    state, logs = position.producer, position.logs
    if state is not None and state.producer != NOT_IDEMPOTENT:
        producer = {
            "id": state.producer.id,
            "epoch": state.producer.epoch,
            "sequence": state.next_sequence,
            "offset": state.next_offset,
        }
        headers += ((_PRODUCER, compact_json(producer)),)
    if logs != UNKNOWN_LOGS:
        source, target = encode_topic_id(logs.source_id), encode_topic_id(logs.target_id)
        headers += ((_LOGS, compact_json({"source": source, "epoch": logs.source_epoch, "target": target})),)
    if position.run is not None:
        run = {"count": position.run.count, "downstream": position.run.last_downstream}
        if position.run.last_upstream != position.offset:  # control batches follow
            run["upstream"] = position.run.last_upstream
        headers += ((_RUN, compact_json(run)),)
    if position.is_translated:
        headers += ((_TRANSLATED, b"true"),)
    return headers


def _producer(headers: Headers) -> ProducerState | None:
    """Parse a producer; None where it is missing or malformed: the partition then starts under a new id."""
    match _header(headers, _PRODUCER):
        case {"id": int(number), "epoch": int(epoch), "sequence": int(sequence), "offset": int(offset)}:
            return ProducerState(ProducerId(number, epoch), sequence, offset)
        case _:
            return None


def _logs(headers: Headers) -> LogIdentity:
    match _header(headers, _LOGS):
        case {"source": str(source), "epoch": int(epoch), "target": str(target)}:
            return LogIdentity(decode_topic_id(source), epoch, decode_topic_id(target))
        case _:
            return UNKNOWN_LOGS


def _run(headers: Headers, offset: int) -> Run | None:
    match _header(headers, _RUN):
        case {"count": int(count), "downstream": int(downstream), **more} if count > 0:
            upstream = more.get("upstream", offset)
            return Run.ending(upstream, downstream, count) if isinstance(upstream, int) else None
        case _:
            return None


def _header(headers: Headers, name: str) -> object:
    return parsed_json(dict(headers).get(name))
