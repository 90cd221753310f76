"""Produce: one batch per partition, acknowledged when the followers have it."""

from typing import TYPE_CHECKING, Any, Final

from kafka.protocol.producer import ProduceResponse

from sparkmirror.batches.record_batch import TRANSACTIONAL, BatchHeader, iterate_batches
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire.error_codes import (
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.memory.partition_log import Appended, PartitionLog

if TYPE_CHECKING:
    from tests.memory.cluster import MemoryTopic
    from tests.memory.requests import Exchange

_BY_ID_FROM: Final = 13
_ADDS_PARTITIONS_FROM: Final = 12
_ALL: Final = -1
NOT_ENOUGH_REPLICAS: Final = 19

_Topic = ProduceResponse.TopicProduceResponse
_Partition = _Topic.PartitionProduceResponse


class _Outcome:
    """The answer for one partition; `required_end` is what the followers must have before."""

    def __init__(self, partition: int, appended: Appended, log: PartitionLog | None) -> None:
        self.partition = partition
        self.appended = appended
        self.log = log
        self.required_end = 0 if log is None else log.end

    @property
    def is_replicated(self) -> bool:
        return self.log is None or self.log.high_watermark >= self.required_end

    def answer(self) -> Any:
        error, base_offset, message = self.appended
        if error == NONE and not self.is_replicated:
            error = REQUEST_TIMED_OUT
        elif error == NONE and self.log is not None and self.log.is_under_min_isr:
            error = NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return _Partition(
            index=self.partition,
            error_code=error,
            base_offset=base_offset,
            log_append_time_ms=-1,
            log_start_offset=0 if self.log is None else self.log.start,
            record_errors=[],
            error_message=message,
        )


def produce(exchange: "Exchange") -> Any:
    request = exchange.request
    by_id = exchange.version >= _BY_ID_FROM
    outcomes: list[tuple[Any, list[_Outcome]]] = []
    for topic in request.topic_data:
        name = topic.topic_id if by_id else topic.name
        last = {data.index: data.records for data in topic.partition_data}  # of two batches the first is lost
        found = _topic(exchange, name)
        outcomes.append((name, [_append(exchange, found, at, bytes(data)) for at, data in last.items()]))
    exchange.cluster.changed()

    def response() -> Any:
        named = "topic_id" if by_id else "name"
        return ProduceResponse(
            responses=[
                _Topic(**{named: name, "partition_responses": [outcome.answer() for outcome in of_topic]})
                for name, of_topic in outcomes
            ]
        )

    def try_to_reply() -> bool:
        if not all(outcome.is_replicated for _, of_topic in outcomes for outcome in of_topic):
            return False
        exchange.reply(response())
        return True

    if request.acks == 0:
        return None
    if request.acks != _ALL or try_to_reply():
        return response() if request.acks != _ALL else None
    exchange.cluster.wait(try_to_reply, request.timeout_ms / 1000, lambda: exchange.reply(response()))
    return None


def _topic(exchange: "Exchange", name: Any) -> "MemoryTopic | int":
    cluster = exchange.cluster
    if isinstance(name, str):
        return cluster.topics.get(name, UNKNOWN_TOPIC_OR_PARTITION)
    return cluster.topic_by_id(name) or UNKNOWN_TOPIC_ID


def _append(exchange: "Exchange", topic: "MemoryTopic | int", partition: int, records: bytes) -> _Outcome:
    if isinstance(topic, int):
        return _Outcome(partition, Appended(topic, -1), None)
    if partition >= len(topic.partitions):
        return _Outcome(partition, Appended(UNKNOWN_TOPIC_OR_PARTITION, -1), None)
    log = topic.partitions[partition]
    if log.leader != exchange.broker.node_id:
        return _Outcome(partition, Appended(NOT_LEADER_OR_FOLLOWER, -1), None)
    code = _refused_by_transaction(exchange, TopicPartition(topic.name, partition), records)
    if code != NONE:
        return _Outcome(partition, Appended(code, -1), None)
    if log.is_under_min_isr and exchange.request.acks == _ALL:
        return _Outcome(partition, Appended(NOT_ENOUGH_REPLICAS, -1), None)
    end = log.end
    appended = log.append(records, exchange.cluster.now_ms())
    if log.end > end:
        for observer in exchange.cluster.observers:
            observer(TopicPartition(topic.name, partition), log.batches[-1])
    return _Outcome(partition, appended, log if appended.error == NONE else None)


def _refused_by_transaction(exchange: "Exchange", partition: TopicPartition, records: bytes) -> int:
    header = _header(records)
    if header is None or not header.attributes & TRANSACTIONAL:
        return NONE
    transactional_id = exchange.request.transactional_id
    if transactional_id is None:
        return TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return exchange.cluster.transactions.verify(
        transactional_id, header, partition, adds=exchange.version >= _ADDS_PARTITIONS_FROM
    )


def _header(records: bytes) -> BatchHeader | None:
    try:
        return next((batch.header for batch in iterate_batches(memoryview(bytearray(records)))), None)
    except CorruptBatchError:
        return None
