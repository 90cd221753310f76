"""Records and looks up producer ids of flows, in `mm2-producer-ids.internal` on the cluster they write to.

Compacted, one partition, nothing is ever deleted. A record for each id names the cluster that its records
came from by Kafka's cluster id: aliases differ between files, and a cluster that replaces another may need
back what came from its predecessor. A flow records an id before its first batch under it. A task that has
fetched a batch, and then reads this log to its end, thus knows for certain whether the batch was mirrored,
and from where.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from typing import Final

from sparkmirror.batches.cycles import KnownWriters
from sparkmirror.batches.log_records import LogRecord, compact_json, decode_log_batch, parsed_json
from sparkmirror.batches.record_batch import NO_PRODUCER_ID, iterate_batches
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, RetriableError
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, require_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for

_PARTITION: Final = TopicPartition(PRODUCER_IDS_TOPIC, 0)
_EMPTY_RESPONSES_MAX: Final = 10
_WAIT_S: Final = 0.5


def producer_id_record(producer_id: int, cluster_id: str, alias: Alias) -> LogRecord:
    """`cluster_id` is where the id's records came from; `alias` names that cluster for human readers."""
    return LogRecord(compact_json([producer_id]), compact_json({"cluster": cluster_id, "alias": alias}))


class OwnProducerIds:
    """Records the ids that one flow writes with, each once. Safe in any thread; blocks."""

    def __init__(self, alias: Alias, source: ConnectionSettings, target: ConnectionSettings) -> None:
        self._alias = alias
        self._source = source
        self._target = target
        self._recorded = {NO_PRODUCER_ID}
        self._lock = network_of(target).lock()

    def record(self, producer_ids: Iterable[int]) -> None:
        """Return when the ids are acknowledged; only then may a batch carry one. Raises KafkaError."""
        with self._lock:
            new = sorted(set(producer_ids) - self._recorded)
            if not new:
                return
            cluster_id = read_metadata(self._source, ()).cluster_id
            with closing(TopicWriter(self._target)) as writer:
                writer.write(
                    PRODUCER_IDS_TOPIC,
                    [producer_id_record(number, cluster_id, self._alias) for number in new],
                )
            self._recorded.update(new)


class WriterDirectory:
    """Looks up which producer ids of a source belong to flows from the target. Safe in any thread; blocks."""

    def __init__(self, source: ConnectionSettings, target: ConnectionSettings) -> None:
        self.known = KnownWriters()
        self._source = source
        self._target = target
        self._from_elsewhere: set[int] = set()
        self._cluster_id: str | None = None
        self._offset = 0
        self._lock = network_of(source).lock()

    def look_up(self, producer_ids: Collection[int]) -> None:
        """`known` knows them afterwards. Raises KafkaError, AuthorizationError where it may not be read."""
        with self._lock:
            unknown = self.known.unknown(producer_ids)
            if unknown:
                self.known.learn(self._read_on(), unknown)

    def from_target(self) -> frozenset[int]:
        """Read all ids that are recorded until now. Raises as `look_up` does."""
        with self._lock:
            self.known.learn(self._read_on())
        return self.known.from_target

    def from_elsewhere(self) -> frozenset[int]:
        """Read the ids of flows into this cluster from other clusters. Raises as `look_up` does."""
        self.from_target()
        return frozenset(self._from_elsewhere)

    def _read_on(self) -> set[int]:
        """The ids of the target's flows that were recorded since the last call."""
        if self._cluster_id is None:
            self._cluster_id = read_metadata(self._target, ()).cluster_id
        metadata = read_metadata(self._source, [PRODUCER_IDS_TOPIC])
        code = metadata.errors.get(PRODUCER_IDS_TOPIC, 0)
        if code == UNKNOWN_TOPIC_OR_PARTITION:
            return set()  # no flow to this cluster has recorded an id
        if code:
            needed = Needed(self._source, (Need.READ_TOPIC.of(PRODUCER_IDS_TOPIC),))
            raise error_for(code, f"read {PRODUCER_IDS_TOPIC}", needed=needed)
        try:
            found = [parse_producer_id(record) for record in self._records(metadata)]
            self._from_elsewhere.update(
                producer_id for producer_id, cluster_id in found if cluster_id not in ("", self._cluster_id)
            )
            return {producer_id for producer_id, cluster_id in found if cluster_id == self._cluster_id}
        except CorruptBatchError as error:
            raise KafkaError(f"read {PRODUCER_IDS_TOPIC}: {error}") from error

    def _records(self, metadata: Metadata) -> Iterator[LogRecord]:
        # The end that ListOffsets names is right also when the leader has just changed (KIP-207).
        settings = ConsumerSettings(self._source)
        end = require_offsets(settings, [_PARTITION], LATEST, metadata)[_PARTITION]
        if end < self._offset:  # the topic was recreated
            self._offset = 0
        offset, empty_responses = self._offset, 0
        with closing(PartitionReader(settings)) as reader:
            while offset < end:
                (fetched,) = reader.fetch({_PARTITION: offset}, _WAIT_S if empty_responses else 0.0)
                before = offset
                if fetched.error:
                    offset = require_offsets(settings, [_PARTITION], EARLIEST)[_PARTITION]
                for batch in iterate_batches(fetched.records):
                    offset = batch.header.last_offset + 1
                    yield from decode_log_batch(batch, _PARTITION.partition)
                empty_responses = empty_responses + 1 if offset == before else 0
                if empty_responses > _EMPTY_RESPONSES_MAX:
                    raise RetriableError(
                        f"read {PRODUCER_IDS_TOPIC}: no records arrive from offset {offset} on"
                    )
        self._offset = offset


def parse_producer_id(record: LogRecord) -> tuple[int, str]:
    """An id and the cluster that its records came from; NO_PRODUCER_ID for any other record."""
    match parsed_json(record.key), parsed_json(record.value):
        case [int(producer_id)], {"cluster": str(cluster_id)}:
            return producer_id, cluster_id
        case _:
            return NO_PRODUCER_ID, ""
