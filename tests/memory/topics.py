"""Metadata, offsets, and what an administrator does to topics."""

import re
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.protocol.admin import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteRecordsResponse,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    DescribeProducersResponse,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.consumer import ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.kafka.wire.error_codes import (
    FENCED_LEADER_EPOCH,
    INVALID_CONFIG,
    INVALID_REPLICATION_FACTOR,
    LEADER_NOT_AVAILABLE,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.memory.partition_log import PartitionLog
from tests.memory.topic_configs import DEFAULTS, fault_of

if TYPE_CHECKING:
    from tests.memory.cluster import MemoryCluster, MemoryTopic
    from tests.memory.requests import Exchange

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_INVALID_TOPIC: Final = 17
_EARLIEST: Final = -2
_LATEST: Final = -1
_COMMITTED: Final = 1
_DEBUGGING_REPLICA_ID: Final = -2
_TOPIC_RESOURCE: Final = 2
_DYNAMIC_TOPIC_CONFIG: Final = 1
_DEFAULT_CONFIG: Final = 5
_UNKNOWN_EPOCH: Final = -1
_UNKNOWN_OFFSET: Final = -1


def describe(exchange: "Exchange") -> Any:
    cluster, asked = exchange.cluster, exchange.request.topics
    if asked is None:
        described = [_described(cluster, topic) for topic in cluster.topics.values()]
    else:
        described = [_asked_topic(cluster, topic) for topic in asked]
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=at.node_id, host=at.host, port=at.port, rack=None)
            for at in cluster.live
        ],
        cluster_id=cluster.name,
        controller_id=cluster.live[0].node_id if cluster.live else -1,
        topics=described,
    )


_Topic = MetadataResponse.MetadataResponseTopic


def _asked_topic(cluster: "MemoryCluster", asked: Any) -> Any:
    if asked.name is None:
        topic = cluster.topic_by_id(asked.topic_id)
        return (
            _described(cluster, topic)
            if topic is not None
            else _Topic(error_code=UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[])
        )
    topic = cluster.topics.get(asked.name)
    if topic is None:
        return _Topic(
            error_code=UNKNOWN_TOPIC_OR_PARTITION, name=asked.name, topic_id=uuid.UUID(int=0), partitions=[]
        )
    return _described(cluster, topic)


def _described(cluster: "MemoryCluster", topic: "MemoryTopic") -> Any:
    everywhere = [broker.node_id for broker in cluster.brokers]
    return _Topic(
        error_code=NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name.startswith("__"),
        partitions=[
            _Topic.MetadataResponsePartition(
                error_code=NONE if log.leader is not None else LEADER_NOT_AVAILABLE,
                partition_index=at,
                leader_id=-1 if log.leader is None else log.leader,
                leader_epoch=log.epoch,
                replica_nodes=everywhere,
                isr_nodes=[broker.node_id for broker in cluster.live],
                offline_replicas=[],
            )
            for at, log in enumerate(topic.partitions)
        ],
    )


def list_offsets(exchange: "Exchange") -> Any:
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse

    def of_partition(name: str, asked: Any) -> Any:
        error, log = _led(exchange, name, asked.partition_index, asked.current_leader_epoch)
        offset, timestamp = (_UNKNOWN_OFFSET, -1) if log is None else _offset(exchange, log, asked.timestamp)
        return topic_class.ListOffsetsPartitionResponse(
            partition_index=asked.partition_index,
            error_code=error,
            timestamp=timestamp,
            offset=offset,
            leader_epoch=_UNKNOWN_EPOCH if log is None else log.epoch,
        )

    return ListOffsetsResponse(
        topics=[
            topic_class(name=topic.name, partitions=[of_partition(topic.name, p) for p in topic.partitions])
            for topic in exchange.request.topics
        ]
    )


def _offset(exchange: "Exchange", log: PartitionLog, timestamp: int) -> tuple[int, int]:
    if timestamp == _EARLIEST:
        return log.start, -1
    if timestamp == _LATEST:
        if exchange.request.replica_id == _DEBUGGING_REPLICA_ID:
            return log.end, -1
        committed = exchange.request.isolation_level == _COMMITTED
        return (log.last_stable_offset if committed else log.high_watermark), -1
    return log.first_since(timestamp)


def offset_for_leader_epoch(exchange: "Exchange") -> Any:
    topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult

    def of_partition(name: str, asked: Any) -> Any:
        error, log = _led(exchange, name, asked.partition, asked.current_leader_epoch)
        epoch, end = (_UNKNOWN_EPOCH, _UNKNOWN_OFFSET)
        if log is not None and asked.leader_epoch <= log.epoch:
            epoch, end = log.end_of_epoch(asked.leader_epoch)
        return topic_class.EpochEndOffset(
            error_code=error, partition=asked.partition, leader_epoch=epoch, end_offset=end
        )

    return OffsetForLeaderEpochResponse(
        topics=[
            topic_class(
                topic=topic.topic, partitions=[of_partition(topic.topic, p) for p in topic.partitions]
            )
            for topic in exchange.request.topics
        ]
    )


def describe_producers(exchange: "Exchange") -> Any:
    topic_class = DescribeProducersResponse.TopicResponse
    partition_class = topic_class.PartitionResponse

    def of_partition(name: str, partition: int) -> Any:
        error, log = _led(exchange, name, partition, None)
        states = {} if log is None else log.producers.entries
        return partition_class(
            partition_index=partition,
            error_code=error,
            error_message=None,
            active_producers=[
                partition_class.ProducerState(
                    producer_id=producer_id,
                    producer_epoch=state.epoch,
                    last_sequence=state.last_sequence,
                    last_timestamp=state.last_timestamp,
                    coordinator_epoch=-1,
                    current_txn_start_offset=-1
                    if state.transaction_start is None
                    else state.transaction_start,
                )
                for producer_id, state in states.items()
            ],
        )

    return DescribeProducersResponse(
        topics=[
            topic_class(
                name=topic.name, partitions=[of_partition(topic.name, p) for p in topic.partition_indexes]
            )
            for topic in exchange.request.topics
        ]
    )


def _led(
    exchange: "Exchange", name: str, partition: int, epoch: int | None
) -> tuple[int, PartitionLog | None]:
    """The log, if this broker leads it in that epoch, or the error."""
    topic = exchange.cluster.topics.get(name)
    if topic is None or partition >= len(topic.partitions):
        return UNKNOWN_TOPIC_OR_PARTITION, None
    log = topic.partitions[partition]
    if epoch is not None and 0 <= epoch != log.epoch:
        return (FENCED_LEADER_EPOCH if epoch < log.epoch else UNKNOWN_LEADER_EPOCH), None
    if log.leader != exchange.broker.node_id:
        return NOT_LEADER_OR_FOLLOWER, None
    return NONE, log


# what an administrator does


def create(exchange: "Exchange") -> Any:
    cluster = exchange.cluster
    results = []
    for asked in exchange.request.topics:
        error = TOPIC_ALREADY_EXISTS if asked.name in cluster.topics else NONE
        config = {entry.name: entry.value for entry in asked.configs or ()}
        fault = fault_of(config)
        if not _NAME.fullmatch(asked.name):
            error = _INVALID_TOPIC
        elif fault is not None:
            error = INVALID_CONFIG
        elif asked.replication_factor > len(cluster.live):
            error = INVALID_REPLICATION_FACTOR
        if error == NONE and not exchange.request.validate_only:
            cluster.create(asked.name, max(asked.num_partitions, 1), config)
        topic = cluster.topics.get(asked.name)
        results.append(
            CreateTopicsResponse.CreatableTopicResult(
                name=asked.name,
                topic_id=uuid.UUID(int=0) if topic is None else topic.id,
                error_code=error,
                error_message=fault if error == INVALID_CONFIG else None,
                num_partitions=0 if topic is None else len(topic.partitions),
                replication_factor=1,
                configs=[],
            )
        )
    cluster.changed()
    return CreateTopicsResponse(topics=results)


def delete(exchange: "Exchange") -> Any:
    cluster = exchange.cluster
    names = exchange.request.topic_names or [topic.name for topic in exchange.request.topics or ()]
    results = []
    for name in names:
        error = NONE if name in cluster.topics else UNKNOWN_TOPIC_OR_PARTITION
        topic_id = cluster.topics[name].id if error == NONE else uuid.UUID(int=0)
        if error == NONE:
            cluster.delete(name)
        results.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error, error_message=None
            )
        )
    return DeleteTopicsResponse(responses=results)


def create_partitions(exchange: "Exchange") -> Any:
    results = []
    for asked in exchange.request.topics:
        topic = exchange.cluster.topics.get(asked.name)
        if topic is not None:
            exchange.cluster.grow(topic, asked.count)
        results.append(
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=asked.name,
                error_code=UNKNOWN_TOPIC_OR_PARTITION if topic is None else NONE,
                error_message=None,
            )
        )
    return CreatePartitionsResponse(results=results)


def delete_records(exchange: "Exchange") -> Any:
    topic_class = DeleteRecordsResponse.DeleteRecordsTopicResult

    def of_partition(name: str, asked: Any) -> Any:
        error, log = _led(exchange, name, asked.partition_index, None)
        if log is not None:
            before = log.high_watermark if asked.offset == _LATEST else asked.offset
            if before > log.high_watermark:
                error = OFFSET_OUT_OF_RANGE
            else:
                log.delete_before(before)
        return topic_class.DeleteRecordsPartitionResult(
            partition_index=asked.partition_index,
            low_watermark=-1 if log is None else log.start,
            error_code=error,
        )

    response = DeleteRecordsResponse(
        topics=[
            topic_class(name=topic.name, partitions=[of_partition(topic.name, p) for p in topic.partitions])
            for topic in exchange.request.topics
        ]
    )
    exchange.cluster.changed()
    return response


def describe_configs(exchange: "Exchange") -> Any:
    result_class = DescribeConfigsResponse.DescribeConfigsResult

    def of_resource(asked: Any) -> Any:
        topic = exchange.cluster.topics.get(asked.resource_name)
        is_known = asked.resource_type != _TOPIC_RESOURCE or topic is not None
        config: Mapping[str, str] = {} if topic is None else {**DEFAULTS, **topic.config}
        return result_class(
            error_code=NONE if is_known else UNKNOWN_TOPIC_OR_PARTITION,
            error_message=None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=[
                result_class.DescribeConfigsResourceResult(
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=_DYNAMIC_TOPIC_CONFIG
                    if topic is not None and name in topic.config
                    else _DEFAULT_CONFIG,
                    is_sensitive=False,
                    synonyms=[],
                )
                for name, value in config.items()
            ],
        )

    return DescribeConfigsResponse(results=[of_resource(asked) for asked in exchange.request.resources])


def alter_configs(exchange: "Exchange") -> Any:
    operations: Mapping[int, Callable[[dict[str, str], Any], object]] = {
        0: lambda config, change: config.update({change.name: change.value}),
        1: lambda config, change: config.pop(change.name, None),
    }
    responses = []
    for asked in exchange.request.resources:
        topic = exchange.cluster.topics.get(asked.resource_name)
        altered: dict[str, str] = {} if topic is None else dict(topic.config)
        for change in asked.configs:
            operations[change.config_operation](altered, change)
        fault = fault_of(altered)
        if topic is not None and fault is None and not exchange.request.validate_only:
            topic.config.clear()
            topic.config.update(altered)
        error = INVALID_CONFIG if fault is not None else NONE
        responses.append(
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=UNKNOWN_TOPIC_OR_PARTITION if topic is None else error,
                error_message=fault,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)
