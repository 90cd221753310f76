"""Reads a topic partition by partition with confluent-kafka, a client that shares no code with the mirror."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

import confluent_kafka as confluent
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from sparkmirror.domain.errors import DisconnectedError, KafkaError
from sparkmirror.domain.ids import TopicPartition

ANSWER_TIMEOUT_S: Final = 30.0
_CONSUME_TIMEOUT_S: Final = 0.2
_MESSAGES_MAX: Final = 10_000
_LEADERS_LOOK_S: Final = 0.05
_NO_LEADER_NOW: Final = {
    confluent.KafkaError.LEADER_NOT_AVAILABLE,
    confluent.KafkaError.NOT_LEADER_FOR_PARTITION,
}

T = TypeVar("T")


class TopicReader:
    """One topic of one cluster. A context manager; partitions are read one after the other.

    Memory stays below some 48 MB whatever the size of the topic: 32 MB read ahead and one batch of messages.
    """

    def __init__(self, bootstrap_servers: str, topic: str, *, read_committed: bool = False) -> None:
        self._topic = topic
        self._bootstrap_servers = bootstrap_servers
        self._consumer = confluent.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "sparkmirror-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if read_committed else "read_uncommitted",
                "queued.max.messages.kbytes": 32768,
                "fetch.wait.max.ms": 50,
                "check.crcs": True,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def partition_count(self) -> int:
        """Return the number of partitions, 0 if the topic does not exist."""
        metadata = self._consumer.list_topics(self._topic, timeout=ANSWER_TIMEOUT_S).topics[self._topic]
        if metadata.error is None:
            return len(metadata.partitions)
        if metadata.error.code() == confluent.KafkaError.UNKNOWN_TOPIC_OR_PART:
            return 0
        raise KafkaError(f"{self._topic} at {self._bootstrap_servers}: {metadata.error}")

    def offsets(self, partition: int) -> tuple[int, int]:
        """Read log start offset and high watermark, retrying while a new partition has no leader."""
        position = confluent.TopicPartition(self._topic, partition)
        return once_led(lambda: self._consumer.get_watermark_offsets(position, timeout=ANSWER_TIMEOUT_S))

    def is_log_append_time(self) -> bool:
        """Whether the broker stamps this topic's records itself."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers, "log_level": 0})
        futures = admin.describe_configs([resource], request_timeout=ANSWER_TIMEOUT_S)
        return bool(futures[resource].result()["message.timestamp.type"].value == "LogAppendTime")

    def read(self, partition: int, start: int | None = None) -> Iterator[confluent.Message]:
        """Read the records from `start`, by default the log start offset, up to the current end.

        The log start may move on meanwhile.
        """
        log_start, end = self.offsets(partition)
        position = log_start if start is None else start
        if position >= end:
            return
        self._consumer.assign([confluent.TopicPartition(self._topic, partition, position)])
        quiet_s = 0.0
        while position < end:
            messages = self._consumer.consume(min(end - position, _MESSAGES_MAX), _CONSUME_TIMEOUT_S)
            quiet_s = 0.0 if messages else quiet_s + _CONSUME_TIMEOUT_S
            if quiet_s > ANSWER_TIMEOUT_S:
                place = TopicPartition(self._topic, partition)
                raise DisconnectedError(
                    f"{self._bootstrap_servers} sent nothing of {place} from {position} on"
                )
            for message in messages:
                if error := message.error():
                    if self._is_end(error):
                        return
                    if start is None and self.offsets(partition)[0] > position:
                        yield from self.read(partition)
                        return
                    raise KafkaError(f"reading {self._topic} at {self._bootstrap_servers}: {error}")
                position = _offset(message) + 1
                if position <= end:
                    yield message

    @staticmethod
    def _is_end(error: confluent.KafkaError) -> bool:
        # Control records are never handed out, so the last offset alone does not tell the end.
        return error.code() == confluent.KafkaError._PARTITION_EOF


def once_led(ask: Callable[[], T]) -> T:
    """The answer of a new partition's leader, which may not know for a moment that it leads."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while True:
        try:
            return ask()
        except confluent.KafkaException as refusal:
            if refusal.args[0].code() not in _NO_LEADER_NOW or time.monotonic() > deadline:
                raise
        time.sleep(_LEADERS_LOOK_S)


def _offset(message: confluent.Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def end_offsets(bootstrap_servers: str, topics: Iterable[str]) -> Mapping[TopicPartition, int]:
    """Read the end offset of every partition of these topics."""
    ends = {}
    for topic in topics:
        with TopicReader(bootstrap_servers, topic) as reader:
            for partition in range(reader.partition_count()):
                ends[TopicPartition(topic, partition)] = reader.offsets(partition)[1]
    return ends


def await_leaders(bootstrap_servers: str, topics: Mapping[str, int]) -> None:
    """Return when every partition of these topics, by their numbers of partitions, is served by its leader.

    Until then a new partition may refuse a producer's first batch and take its second. The leader knows
    nothing of that producer yet and accepts any first sequence, so the first one is lost and acknowledged.
    Raises KafkaError when it takes too long.
    """
    wanted = {
        confluent.TopicPartition(topic, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]  # has no types
        for topic, partitions in topics.items()
        for partition in range(partitions)
    }
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while True:
        # A new client each time: librdkafka continues believing what a broker that knew no such topic said.
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        try:
            for future in admin.list_offsets(wanted, request_timeout=ANSWER_TIMEOUT_S).values():
                future.result(ANSWER_TIMEOUT_S)
        except confluent.KafkaException as error:
            if time.monotonic() > deadline:
                raise KafkaError(f"{', '.join(topics)} at {bootstrap_servers}: {error}") from error
            time.sleep(_LEADERS_LOOK_S)
            continue
        return
