"""Finds where partitions begin and end (ListOffsets), and how large their logs are (DescribeLogDirs)."""

import random
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, OffsetReset
from sparkmirror.domain.errors import KafkaError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, numbers_by_topic
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.metadata import Metadata
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import (
    INCONSISTENT_TOPIC_ID,
    LEADER_CHANGED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from sparkmirror.kafka.wire.primitives import NO_EPOCH

EARLIEST: Final = -2
LATEST: Final = -1
_NO_RECORD: Final = -1
_VERSION_MAX: Final = 7
_NO_REPLICA_ID: Final = -1
_DEBUGGING_REPLICA_ID: Final = -2
"""Kafka's name for it: the leader answers with what it has, replicated or not."""

_NO_LEADER: Final = LEADER_CHANGED - {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID}
_LEADER_FOUND_S: Final = 3.0
_LEADER_POLL: Final = Backoff(first_s=0.1, max_s=1.0)
_STABLE_WITHIN_S: Final = 60.0
_STABLE_POLL: Final = Backoff(first_s=0.005, max_s=0.2)
"""The markers of a transaction that ends are written within milliseconds."""


def list_offsets(
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    metadata: Metadata | None = None,
    *,
    unreplicated: bool = False,
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The EARLIEST or LATEST offset of each partition, or the error for it.

    LATEST is the last stable offset under read_committed, and the end of the leader's own log where
    `unreplicated` is asked for. `metadata` spares a request where that of these
    topics has just been read. Raises RetriableError when no broker responds.
    """
    if not partitions:
        return {}
    with closing(Cluster(settings.connection, metadata)) as cluster:
        return offsets_by(cluster, settings, partitions, which, unreplicated=unreplicated)


def reset_offsets(
    settings: ConsumerSettings, partitions: Collection[TopicPartition], metadata: Metadata | None = None
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """The offsets where partitions begin without a position, or the errors; not for OffsetReset.NONE.

    Raises RetriableError when no broker responds.
    """
    if settings.offset_reset is OffsetReset.EARLIEST:
        return list_offsets(settings, partitions, EARLIEST, metadata)
    if settings.start_time is None:
        return list_offsets(settings, partitions, LATEST, metadata)
    since_ms = settings.start_time.ms(int(time.time() * 1000))
    found = list_offsets(settings, partitions, since_ms, metadata)
    nothing_since = [partition for partition, offset in found.items() if offset == _NO_RECORD]
    return {**found, **list_offsets(settings, nothing_since, LATEST, metadata)}


def offsets_by(
    cluster: Cluster,
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    *,
    unreplicated: bool = False,
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """Do as `list_offsets`, over the cluster's connections."""
    found = log_ends_by(cluster, settings, partitions, which, unreplicated=unreplicated)
    return {each: end.offset if isinstance(end, LogEnd) else end for each, end in found.items()}


class LogEnd(NamedTuple):
    """An offset of a partition, and its leader's epoch when it told it, -1 if that is unknown."""

    offset: int
    epoch: int


def log_ends_by(
    cluster: Cluster,
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    *,
    unreplicated: bool = False,
) -> Mapping[TopicPartition, LogEnd | SparkmirrorError]:
    """Do as `offsets_by`, with leader epochs."""

    def ask(
        connection: Connection, led: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, LogEnd | SparkmirrorError]:
        request = _offsets_request(led, which, read_committed=settings.read_committed)
        if unreplicated:
            request.replica_id = _DEBUGGING_REPLICA_ID
        timeout_s = settings.connection.request_timeout_s
        response = connection.request(
            request, ListOffsetsResponse, timeout_s=timeout_s, version_max=_VERSION_MAX
        )
        return {
            TopicPartition(topic.name, found.partition_index): _log_end(cluster, topic.name, found)
            for topic in response.topics
            for found in topic.partitions
        }

    return cluster.ask_leaders(partitions, ask) if partitions else {}


def settled_offsets(
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    metadata: Metadata | None = None,
) -> Mapping[TopicPartition, int | SparkmirrorError]:
    """Do as `list_offsets`, but ask again for some seconds where a partition has no leader for the moment.

    A topic that was created a moment ago has none yet.
    """
    network = network_of(settings.connection)
    deadline, failures = network.time() + _LEADER_FOUND_S, 0
    offsets = dict(list_offsets(settings, partitions, which, metadata))
    while (moving := [each for each, found in offsets.items() if _is_moving(found)]) and (
        network.time() < deadline
    ):
        failures += 1
        network.sleep(_LEADER_POLL.delay_s(failures, random.random()))
        offsets.update(list_offsets(settings, moving, which))
    return offsets


def _is_moving(found: int | SparkmirrorError) -> bool:
    return isinstance(found, KafkaError) and found.code in _NO_LEADER


def require_offsets(
    settings: ConsumerSettings,
    partitions: Collection[TopicPartition],
    which: int,
    metadata: Metadata | None = None,
) -> Mapping[TopicPartition, int]:
    """Do as `settled_offsets`, but raise the first error of any partition."""
    offsets: dict[TopicPartition, int] = {}
    for partition, offset in settled_offsets(settings, partitions, which, metadata).items():
        if isinstance(offset, SparkmirrorError):
            raise offset
        offsets[partition] = offset
    return offsets


def await_stable(settings: ConnectionSettings, topic: str) -> None:
    """Wait until all records that are in a topic now are committed or aborted (KIP-98).

    While a transaction is open, its first record hides those that others have committed behind it. Raises
    KafkaError, RetriableError when it takes too long.
    """
    network = network_of(settings)
    deadline = network.time() + _STABLE_WITHIN_S
    with closing(Cluster(settings)) as cluster:
        metadata, partitions = cluster.learn([topic]), cluster.partitions(topic)
        if not partitions:
            raise cluster.error(UNKNOWN_TOPIC_OR_PARTITION, f"read {topic}", Need.DESCRIBE_TOPIC.of(topic))
    ends = require_offsets(ConsumerSettings(settings), partitions, LATEST, metadata)
    polls = 0
    while True:
        stable = require_offsets(ConsumerSettings(settings, read_committed=True), list(ends), LATEST)
        ends = {partition: end for partition, end in ends.items() if stable[partition] < end}
        if not ends:
            return
        if network.time() > deadline:
            unstable = ", ".join(map(str, ends))
            raise RetriableError(
                f"{unstable} on {settings.cluster}: a transaction has been open for {_STABLE_WITHIN_S:g} s"
            )
        polls += 1
        network.sleep(_STABLE_POLL.delay_s(polls, random.random()))


def log_sizes(
    settings: ConnectionSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """The bytes of partitions on their leaders' disks (KIP-113), as far as brokers disclose it.

    It takes DESCRIBE on the cluster. Raises RetriableError when no broker responds.
    """

    def ask(connection: Connection, led: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        response = connection.request(
            _sizes_request(led), DescribeLogDirsResponse, timeout_s=settings.request_timeout_s
        )
        return {
            TopicPartition(topic.name, partition.partition_index): int(partition.partition_size)
            for directory in response.results
            for topic in directory.topics
            for partition in topic.partitions
            if not partition.is_future_key  # a copy on its way to another disk
        }

    with closing(Cluster(settings)) as cluster:
        sizes = cluster.ask_leaders(partitions, ask)
    return {partition: size for partition, size in sizes.items() if not isinstance(size, SparkmirrorError)}


def _log_end(cluster: Cluster, topic: str, found: Any) -> LogEnd | SparkmirrorError:
    if found.error_code:
        action = f"ListOffsets of {topic}-{found.partition_index}"
        return cluster.error(found.error_code, action, Need.DESCRIBE_TOPIC.of(topic))
    epoch = getattr(found, "leader_epoch", None)
    return LogEnd(int(found.offset), NO_EPOCH if epoch is None else int(epoch))


def _offsets_request(partitions: Collection[TopicPartition], which: int, *, read_committed: bool) -> Any:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for topic, partition in partitions:
        asked = topic_class.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=which
        )
        by_topic.setdefault(topic, []).append(asked)
    return ListOffsetsRequest(
        replica_id=_NO_REPLICA_ID,
        isolation_level=int(read_committed),
        topics=[topic_class(name=topic, partitions=asked) for topic, asked in by_topic.items()],
    )


def _sizes_request(partitions: Collection[TopicPartition]) -> Any:
    topic_class = DescribeLogDirsRequest.DescribableLogDirTopic
    by_topic = numbers_by_topic(partitions)
    return DescribeLogDirsRequest(
        topics=[topic_class(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]
    )
