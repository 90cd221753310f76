"""Coordinators of transactions, of both versions of the protocol (KIP-98, KIP-890).

The rules are those of Kafka's TransactionCoordinator and TransactionMetadata; markers are written a moment
after EndTxn was answered.
"""

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from kafka.protocol.admin import DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.producer import (
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    WriteTxnMarkersResponse,
)

from sparkmirror.batches.record_batch import BatchHeader
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NONE,
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.support.batches import COORDINATOR_EPOCH

if TYPE_CHECKING:
    from tests.memory.cluster import Cancellable, MemoryCluster
    from tests.memory.requests import Exchange

_TRANSACTION_COORDINATOR_FENCED: Final = 52
_OPERATION_NOT_ATTEMPTED: Final = 55
_TRANSACTIONAL_ID_NOT_FOUND: Final = 105
_NO_EPOCH: Final = -1
_NO_PRODUCER_ID: Final = -1
_EPOCH_MAX: Final = 32766
_BUMPING_END_FROM: Final = 5
_MARKERS_AFTER_S: Final = 0.004
_REPLICATED_AFTER_S: Final = 0.1
_TIMEOUT_MAX_MS: Final = 900_000
"""A broker's `transaction.max.timeout.ms`."""


class State(Enum):
    EMPTY = auto()
    ONGOING = auto()
    PREPARE_COMMIT = auto()
    PREPARE_ABORT = auto()
    COMPLETE_COMMIT = auto()
    COMPLETE_ABORT = auto()

    @property
    def is_ending(self) -> bool:
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)


class Transaction:
    """The coordinator's state of one transactional id."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = self.last_epoch = _NO_EPOCH
        self.state = State.EMPTY
        self.partitions: set[TopicPartition] = set()
        self.timeout_s = 60.0
        self.timer: Cancellable | None = None


class TransactionCoordinators:
    """All of a cluster's: which broker answers for an id is `MemoryCluster.coordinator`."""

    def __init__(self, cluster: "MemoryCluster") -> None:
        self._cluster = cluster
        self._transactions: dict[str, Transaction] = {}
        self.is_denied = False
        """Whether clients have no right to transactional ids."""
        self.is_idempotence_denied = False
        """Whether clients have no right to producer ids without a transactional one."""

    def expire(self) -> None:
        """Forget all ids, as after `transactional.id.expiration.ms`."""
        self._transactions.clear()

    def init(self, name: str, timeout_s: float, known: tuple[int, int]) -> tuple[int, int, int]:
        """Error, producer id and epoch."""
        if self.is_denied:
            return TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1
        found = self._transactions.get(name)
        if found is None:
            found = self._transactions[name] = Transaction(self._cluster.new_producer_id())
        producer_id, expected = known
        if producer_id != _NO_PRODUCER_ID and found.epoch != _NO_EPOCH and producer_id != found.producer_id:
            return PRODUCER_FENCED, -1, -1
        if found.state.is_ending:
            return CONCURRENT_TRANSACTIONS, -1, -1
        if found.state is State.ONGOING:
            self._fence(found)
            return CONCURRENT_TRANSACTIONS, -1, -1
        if expected != _NO_EPOCH and found.epoch not in (_NO_EPOCH, expected):
            if expected != found.last_epoch:
                return PRODUCER_FENCED, -1, -1
        else:
            found.last_epoch = found.epoch if expected != _NO_EPOCH else _NO_EPOCH
            self._bump(found)
        found.timeout_s = timeout_s
        found.state = State.EMPTY
        return NONE, found.producer_id, found.epoch

    def open(self) -> dict[str, int]:
        """Return the producer ids of transactional ids with an open transaction."""
        return {
            name: found.producer_id
            for name, found in self._transactions.items()
            if found.state is State.ONGOING
        }

    def add(self, name: str, producer: tuple[int, int], partitions: set[TopicPartition]) -> int:
        found = self._transactions.get(name)
        if found is None or found.producer_id != producer[0]:
            return INVALID_PRODUCER_ID_MAPPING
        if found.epoch != producer[1]:
            return PRODUCER_FENCED
        if found.state.is_ending:
            return CONCURRENT_TRANSACTIONS
        self._add(found, partitions)
        return NONE

    def verify(self, name: str, header: BatchHeader, partition: TopicPartition, *, adds: bool) -> int:
        """Return the answer to Produce for a batch that claims to be part of a transaction."""
        entry = self._cluster.log(partition).producers.entries.get(header.producer_id)
        if entry and entry.transaction_start is not None and entry.epoch == header.producer_epoch:
            return NONE
        found = self._transactions.get(name)
        if found is None or found.producer_id != header.producer_id:
            return INVALID_PRODUCER_ID_MAPPING
        if found.epoch != header.producer_epoch:
            return INVALID_PRODUCER_EPOCH
        if found.state.is_ending:
            return CONCURRENT_TRANSACTIONS
        if adds:
            self._add(found, {partition})
            return NONE
        is_added = found.state is State.ONGOING and partition in found.partitions
        return NONE if is_added else TRANSACTION_ABORTABLE

    def end(self, name: str, producer: tuple[int, int], *, commit: bool, bumps: bool) -> tuple[int, int, int]:
        """Error, producer id and epoch."""
        found = self._transactions.get(name)
        if found is None or found.producer_id != producer[0]:
            return INVALID_PRODUCER_ID_MAPPING, -1, -1
        has_ended = found.state not in (State.EMPTY, State.ONGOING)
        is_retry = bumps and producer[1] == found.epoch - 1 and has_ended
        if producer[1] != found.epoch and not is_retry:
            return PRODUCER_FENCED, -1, -1
        error = self._end(found, commit=commit, bumps=bumps, is_retry=is_retry)
        return error, found.producer_id, found.epoch

    def described(self, name: str) -> tuple[int, int, int]:
        """Error, producer id and epoch."""
        found = self._transactions.get(name)
        if found is None:
            return _TRANSACTIONAL_ID_NOT_FOUND, -1, -1
        return NONE, found.producer_id, found.epoch

    def is_committed(self, producer_id: int) -> bool:
        """Whether what the producer has open in logs is only waiting for its markers."""
        found = self._transactions.values()
        return any(t.producer_id == producer_id and t.state is State.PREPARE_COMMIT for t in found)

    def _end(self, found: Transaction, *, commit: bool, bumps: bool, is_retry: bool) -> int:
        prepare = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        complete = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        if found.state is State.ONGOING:
            if bumps:
                self._bump(found)
            self._prepare(found, prepare)
            return NONE
        if found.state.is_ending:
            return CONCURRENT_TRANSACTIONS if found.state is prepare else INVALID_TXN_STATE
        if bumps and not is_retry and not commit:  # nothing was added: only the epoch changes
            self._bump(found)
            found.state = State.COMPLETE_ABORT
            return NONE
        is_repeated = found.state is complete and (is_retry or not bumps)
        return NONE if is_repeated else INVALID_TXN_STATE

    def _add(self, found: Transaction, partitions: set[TopicPartition]) -> None:
        found.partitions |= partitions
        if found.state is not State.ONGOING:
            found.state = State.ONGOING
            found.timer = self._cluster.scheduler.call_later(found.timeout_s, self._fence, found)

    def _fence(self, found: Transaction) -> None:
        """Abort what is open; its owner's epoch is over."""
        if found.state is State.ONGOING:
            self._bump(found)
            self._prepare(found, State.PREPARE_ABORT)

    def _bump(self, found: Transaction) -> None:
        found.last_epoch, found.epoch = found.epoch, found.epoch + 1
        if found.epoch > _EPOCH_MAX:
            found.producer_id, found.epoch = self._cluster.new_producer_id(), 0

    def _prepare(self, found: Transaction, state: State) -> None:
        if found.timer is not None:
            found.timer.cancel()
        found.state = state
        self._cluster.scheduler.call_later(_MARKERS_AFTER_S, self._write_markers, found)

    def _write_markers(self, found: Transaction) -> None:
        commit = found.state is State.PREPARE_COMMIT
        for partition in found.partitions:
            if partition.topic in self._cluster.topics:
                self._cluster.log(partition).append_marker(
                    found.producer_id, found.epoch, self._cluster.now_ms(), commit=commit
                )
        self._cluster.changed()
        self._complete(found)

    def _complete(self, found: Transaction) -> None:
        """When all markers are replicated: until then the coordinator knows of none of them."""
        topics = self._cluster.topics
        logs = [self._cluster.log(partition) for partition in found.partitions if partition.topic in topics]
        if any(log.replicated_end is not None for log in logs):
            self._cluster.scheduler.call_later(_REPLICATED_AFTER_S, self._complete, found)
            return
        found.partitions.clear()
        is_commit = found.state is State.PREPARE_COMMIT
        found.state = State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT
        self._cluster.changed()


def init_producer_id(exchange: "Exchange") -> Any:
    request = exchange.request
    if request.transactional_id is None:
        if exchange.cluster.transactions.is_idempotence_denied:
            return InitProducerIdResponse(
                error_code=CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
            )
        producer_id = exchange.cluster.new_producer_id()
        return InitProducerIdResponse(error_code=NONE, producer_id=producer_id, producer_epoch=0)
    error, producer_id, epoch = NONE, -1, -1
    if not request.transactional_id:
        error = INVALID_REQUEST
    elif request.transaction_timeout_ms > _TIMEOUT_MAX_MS:
        error = INVALID_TRANSACTION_TIMEOUT
    elif exchange.cluster.coordinator(request.transactional_id) is not exchange.broker:
        error = NOT_COORDINATOR
    else:
        known = _known(request.producer_id), _known(request.producer_epoch)
        timeout_s = request.transaction_timeout_ms / 1000
        error, producer_id, epoch = exchange.cluster.transactions.init(
            request.transactional_id, timeout_s, known
        )
    return InitProducerIdResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch)


def _known(value: int | None) -> int:
    """Versions before 3 have no such field."""
    return -1 if value is None else value


def add_partitions(exchange: "Exchange") -> Any:
    request, cluster = exchange.request, exchange.cluster
    name = request.v3_and_below_transactional_id
    asked = {
        TopicPartition(topic.name, partition)
        for topic in request.v3_and_below_topics
        for partition in topic.partitions
    }
    missing = {partition for partition in asked if partition.topic not in cluster.topics}
    producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
    if cluster.coordinator(name) is not exchange.broker:
        error = NOT_COORDINATOR
    else:
        error = _OPERATION_NOT_ATTEMPTED if missing else cluster.transactions.add(name, producer, asked)
    topic_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    result_class = topic_class.AddPartitionsToTxnPartitionResult

    def of_partition(topic: str, partition: int) -> Any:
        is_missing = TopicPartition(topic, partition) in missing and error == _OPERATION_NOT_ATTEMPTED
        code = UNKNOWN_TOPIC_OR_PARTITION if is_missing else error
        return result_class(partition_index=partition, partition_error_code=code)

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            topic_class(
                name=topic.name,
                results_by_partition=[of_partition(topic.name, partition) for partition in topic.partitions],
            )
            for topic in request.v3_and_below_topics
        ]
    )


def end(exchange: "Exchange") -> Any:
    request, cluster = exchange.request, exchange.cluster
    error, producer_id, epoch = NOT_COORDINATOR, -1, -1
    if cluster.coordinator(request.transactional_id) is exchange.broker:
        error, producer_id, epoch = cluster.transactions.end(
            request.transactional_id,
            (request.producer_id, request.producer_epoch),
            commit=request.committed,
            bumps=exchange.version >= _BUMPING_END_FROM,
        )
    return EndTxnResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch)


def describe(exchange: "Exchange") -> Any:
    cluster = exchange.cluster

    def state(name: str) -> Any:
        error, producer_id, epoch = NOT_COORDINATOR, -1, -1
        if cluster.coordinator(name) is exchange.broker:
            error, producer_id, epoch = cluster.transactions.described(name)
        return DescribeTransactionsResponse.TransactionState(
            error_code=error,
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=-1,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[],
        )

    names = exchange.request.transactional_ids
    return DescribeTransactionsResponse(transaction_states=[state(name) for name in names])


def list_open(exchange: "Exchange") -> Any:
    """Each broker lists those that it coordinates."""
    cluster = exchange.cluster
    assert exchange.request.state_filters == ["Ongoing"]
    listed = [
        ListTransactionsResponse.TransactionState(
            transactional_id=name, producer_id=producer_id, transaction_state="Ongoing"
        )
        for name, producer_id in cluster.transactions.open().items()
        if cluster.coordinator(name) is exchange.broker
    ]
    return ListTransactionsResponse(error_code=NONE, unknown_state_filters=[], transaction_states=listed)


def write_markers(exchange: "Exchange") -> Any:
    """Append the markers that coordinators send to leaders, also where they are there already."""
    marker_class = WriteTxnMarkersResponse.WritableTxnMarkerResult
    topic_class = marker_class.WritableTxnMarkerTopicResult
    cluster = exchange.cluster

    def written(marker: Any, partition: TopicPartition) -> int:
        if partition.topic not in cluster.topics:
            return UNKNOWN_TOPIC_OR_PARTITION
        log = cluster.log(partition)
        if log.leader != exchange.broker.node_id:
            return NOT_LEADER_OR_FOLLOWER
        entry = log.producers.entries.get(marker.producer_id)
        if entry is not None and marker.producer_epoch < entry.epoch:
            return INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < COORDINATOR_EPOCH:
            return _TRANSACTION_COORDINATOR_FENCED
        commit = marker.transaction_result
        log.append_marker(marker.producer_id, marker.producer_epoch, cluster.now_ms(), commit=commit)
        return NONE

    response = WriteTxnMarkersResponse(
        markers=[
            marker_class(
                producer_id=marker.producer_id,
                topics=[
                    topic_class(
                        name=topic.name,
                        partitions=[
                            topic_class.WritableTxnMarkerPartitionResult(
                                partition_index=at, error_code=written(marker, TopicPartition(topic.name, at))
                            )
                            for at in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in exchange.request.markers
        ]
    )
    cluster.changed()
    return response
