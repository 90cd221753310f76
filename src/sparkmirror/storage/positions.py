"""Positions in Connect's offsets topic, in MM2's bytes: the last replicated upstream offset per partition.

Java MM2 and this project can therefore continue from each other's positions. Record headers, which Java does
not look at, hold what is needed to continue exactly: see `ProducerState` and `LogIdentity`.
"""

import base64
import json
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from sparkmirror.batches.log_records import Headers, LogRecord
from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId, ProducerState
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import UNKNOWN_LOGS, Alias, ConnectorName, LogIdentity, TopicPartition
from sparkmirror.kafka.offsets import await_stable
from sparkmirror.kafka.topic_log import read_topic
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.storage.compact_json import compact_json
from sparkmirror.storage.connect_records import (
    SourcePartition,
    parse_source_position_key,
    parse_source_position_value,
    source_position_key,
    source_position_value,
)

_PRODUCER = "sparkmirror.producer"
_LOGS = "sparkmirror.logs"
_RUN = "sparkmirror.run"
NOTHING_REPLICATED = -1
"""Also Java's word for "no position"."""


class Position(NamedTuple):
    """`offset` is the last replicated upstream one; `producer` is None where Java MM2 wrote the record.

    `run` ends with that offset: a task that goes on knows what the offset syncs of the one before spoke for.
    """

    offset: int
    producer: ProducerState | None = None
    logs: LogIdentity = UNKNOWN_LOGS
    run: Run | None = None


def position_key(connector: ConnectorName, source: Alias, partition: TopicPartition) -> bytes:
    return source_position_key(SourcePartition(connector, source, *partition))


def position_record(
    connector: ConnectorName, source: Alias, partition: TopicPartition, position: Position
) -> LogRecord:
    key = position_key(connector, source, partition)
    value = source_position_value(position.offset)
    return LogRecord(key, value, partition=None, headers=_headers(position))


def read_positions(
    settings: ConnectionSettings,
    topic: str,
    connector: ConnectorName,
    source: Alias,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, Position]:
    """The newest position of each partition that has one, found by raw key bytes as Connect does.

    What was written in transactions counts when it's committed; those that are open are waited for. Raises
    KafkaError.
    """
    wanted = {position_key(connector, source, partition): partition for partition in partitions}
    return _latest(settings, topic, wanted.get)


def read_all_positions(
    settings: ConnectionSettings, topic: str, connector: ConnectorName, source: Alias
) -> Mapping[TopicPartition, Position]:
    """As `read_positions`, of every partition that the connector has ever copied."""

    def of_connector(key: bytes) -> TopicPartition | None:
        found = parse_source_position_key(key)
        is_theirs = found is not None and (found.connector, found.cluster_alias) == (connector, source)
        return TopicPartition(found.topic, found.partition) if found is not None and is_theirs else None

    return _latest(settings, topic, of_connector)


def _latest(
    settings: ConnectionSettings, topic: str, partition_of: Callable[[bytes], TopicPartition | None]
) -> Mapping[TopicPartition, Position]:
    positions: dict[TopicPartition, Position] = {}
    await_stable(settings, topic)
    for record in read_topic(settings, topic, read_committed=True):
        partition = partition_of(record.key or b"")
        if partition is None:
            continue
        position = _position(record)
        if position is None:
            positions.pop(partition, None)
        else:
            positions[partition] = position
    return positions


def _position(record: LogRecord) -> Position | None:
    offset = parse_source_position_value(record.value)
    producer, logs = _producer(record.headers), _logs(record.headers)
    if offset is None:
        # Ours says by it that a partition begins with its first record; Java's, that there is no position.
        is_ours = producer is not None and record.value == source_position_value(NOTHING_REPLICATED)
        return Position(NOTHING_REPLICATED, producer, logs) if is_ours else None
    return Position(offset, producer, logs, _run(record.headers, offset))


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
        source, target = (
            base64.b64encode(topic_id).decode() for topic_id in (logs.source_id, logs.target_id)
        )
        headers += ((_LOGS, compact_json({"source": source, "epoch": logs.source_epoch, "target": target})),)
    if position.run is not None:
        run = {"count": position.run.count, "downstream": position.run.last_downstream}
        headers += ((_RUN, compact_json(run)),)
    return headers


def _producer(headers: Headers) -> ProducerState | None:
    """None for what is not there or malformed: then the partition begins under a new id."""
    match _told(headers, _PRODUCER):
        case {"id": int(number), "epoch": int(epoch), "sequence": int(sequence), "offset": int(offset)}:
            return ProducerState(ProducerId(number, epoch), sequence, offset)
        case _:
            return None


def _logs(headers: Headers) -> LogIdentity:
    match _told(headers, _LOGS):
        case {"source": str(source), "epoch": int(epoch), "target": str(target)}:
            return LogIdentity(base64.b64decode(source), epoch, base64.b64decode(target))
        case _:
            return UNKNOWN_LOGS


def _run(headers: Headers, offset: int) -> Run | None:
    match _told(headers, _RUN):
        case {"count": int(count), "downstream": int(downstream)} if count > 0:
            return Run.ending(offset, downstream, count)
        case _:
            return None


def _told(headers: Headers, name: str) -> object:
    try:
        return json.loads(dict(headers).get(name) or b"null")
    except ValueError:
        return None
