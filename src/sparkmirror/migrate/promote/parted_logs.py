"""Reads the ends of two logs that have parted, and keeps records of one of them in a topic of their own."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.batches.record_body import read_body
from sparkmirror.batches.records import RawRecord, read_records
from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import Flow, TopicPartition, encode_topic_id
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, require_offsets
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.data.topic_log import TopicWriter, read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.migrate.promote.log_comparison import Difference, Kind, Parted, differences, first_compared

KEPT_FROM: Final = "sparkmirror-kept-from"
"""The header of a record that was kept aside: where it was, as JSON with the fields of dead letters."""

_WRITTEN_TOGETHER: Final = 500


class LogSpan(NamedTuple):
    """The start and end of a log; a missing log has neither."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PartedLogs:
    """Reads both logs of the flow that resumes: `target` is to follow `source`. Blocks. Raises KafkaError."""

    source: ConnectionSettings
    target: ConnectionSettings

    def differences(
        self, leading: LogSpan, follower: LogSpan, parted: Parted, *, compares_times: bool
    ) -> Iterator[Difference]:
        begin = first_compared(parted)
        with (
            closing(SpanReader(ConsumerSettings(self.target))) as here,
            closing(SpanReader(ConsumerSettings(self.source))) as there,
        ):
            yield from differences(
                _records(here, follower, begin, parted.end),
                _records(there, leading, begin, parted.end),
                parted,
                compares_times=compares_times,
            )


def first_missing(
    source: ConsumerSettings, target: ConsumerSettings, logs: Mapping[TopicPartition, TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return the offset of the source's first record behind all that the target has.

    `logs` has the target's partitions, which preserve offsets, by the source's; left out are those that miss
    nothing. What ends a target's log may be control markers: of a gap in the source, or of a switch that was
    interrupted, in the places of records. Blocks. Raises KafkaError.
    """
    with closing(SpanReader(target)) as here, closing(SpanReader(source)) as there:
        ends = require_offsets(target, logs.values(), LATEST)
        starts = require_offsets(target, logs.values(), EARLIEST)
        upper = require_offsets(source, logs, LATEST)
        found: dict[TopicPartition, int] = {}
        for at, copy in logs.items():
            begin = _end_of_data(here, LogSpan(copy, starts[copy], ends[copy]))
            records = (
                max(begin, batch.header.base_offset)
                for batch in there.read(at, begin, upper[at])
                if batch.header.record_count and not batch.header.attributes & CONTROL
            )
            first = next(records, None)
            if first is not None:
                found[at] = first
    return found


def _end_of_data(reader: SpanReader, log: LogSpan) -> int:
    """Return the offset behind the log's last batch that is no control batch; its start if there is none."""
    for headers in reader.headers_backwards(log.partition, log.start, log.end):
        data = [header.last_offset for header in headers if not header.attributes & CONTROL]
        if data:
            return data[-1] + 1
    return log.start


def _records(reader: SpanReader, log: LogSpan, begin: int, end: int) -> Iterator[RawRecord]:
    first, end = max(begin, log.start), min(end, log.end)
    for batch in reader.read(log.partition, first, end):
        if not batch.header.attributes & CONTROL:
            yield from (each for each in read_records(batch) if first <= each.offset < end)


@dataclass(frozen=True, slots=True)
class KeptAside:
    """Records that were kept in one topic of a cluster. Blocks. Raises KafkaError."""

    flow: Flow
    target: ConnectionSettings
    plugins: AdminPlugins
    topic: str
    replication_factor: int
    ids: Mapping[str, bytes]
    """The ids of the original topics: a recreated topic has other records at the same offsets."""

    def offsets(self) -> Mapping[TopicPartition, Collection[int]]:
        """Read the original offsets of the records that are kept there."""
        found: dict[TopicPartition, set[int]] = {}
        nothing: list[LogRecord] = []
        for record in unless_missing(lambda: list(read_topic(self.target, self.topic)), nothing):
            place = _place(record)
            if place is not None and self._id_of(place[0]) == place[2]:
                found.setdefault(place[0], set()).add(place[1])
        return found

    def _id_of(self, partition: TopicPartition) -> str:
        return encode_topic_id(self.ids.get(partition.topic, b""))

    def ensure(self) -> None:
        """Create the topic, without retention by time."""
        with closing(Admin(self.target)) as admin:
            if self.topic in admin.partition_counts():
                return
            writes = self.plugins.over(admin, self.flow.target)
            creation = TopicCreation(self.topic, 1, self.replication_factor, {"retention.ms": "-1"})
            for error in writes.create_topics([creation]).values():
                if error is not None:
                    raise error

    def keep(self, partition: TopicPartition, found: Iterator[Difference], known: Collection[int]) -> None:
        """Copy the follower's records, but for those that are there, in their order."""
        own = (each.record for each in found if each.kind is not Kind.PASSED)
        topic_id = self._id_of(partition)
        left = (_kept(partition, topic_id, record) for record in own if record.offset not in known)
        with closing(TopicWriter(self.target)) as writer:
            while some := list(islice(left, _WRITTEN_TOGETHER)):
                writer.write(self.topic, some)


def _kept(partition: TopicPartition, topic_id: str, record: RawRecord) -> LogRecord:
    key, value, headers = read_body(record.body)
    place = {
        "topic": partition.topic,
        "id": topic_id,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    named = tuple((name.decode(errors="replace"), content) for name, content in headers)
    return LogRecord(
        key, value, timestamp_ms=record.timestamp, headers=(*named, (KEPT_FROM, compact_json(place)))
    )


def _place(record: LogRecord) -> tuple[TopicPartition, int, str] | None:
    """Return a record's origin: partition, offset, and the topic's id in base64."""
    match parsed_json(dict(record.headers).get(KEPT_FROM)):
        case {"topic": str(topic), "id": str(of), "partition": int(partition), "offset": int(offset)}:
            return TopicPartition(topic, partition), offset, of
        case _:
            return None
