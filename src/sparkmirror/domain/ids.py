"""Names of the things that are mirrored, each of its own type so that they can't be mixed up."""

import base64
from collections.abc import Iterable
from typing import NamedTuple, NewType

Alias = NewType("Alias", str)
"""A cluster's name in `clusters`, e.g. `us-west`."""

ConnectorName = NewType("ConnectorName", str)
GroupId = NewType("GroupId", str)


class TopicPartition(NamedTuple):
    """A partition of a topic, written `topic-partition` as Kafka does."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TopicPartition":
        """Split at the last dash, as `task.assigned.partitions` is read."""
        topic, _, partition = text.rpartition("-")
        if not topic:
            raise ValueError(f"not a topic-partition: {text!r}")
        return cls(topic, int(partition))


class Flow(NamedTuple):
    """A direction of replication, written `source->target` as in mm2.properties."""

    source: Alias
    target: Alias

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


class LogIdentity(NamedTuple):
    """Topic ids (KIP-516), and the leader epoch under which the source was read last (KIP-101).

    Ids are empty and the epoch is -1 where they are not known: old brokers, positions of Java MM2.
    """

    source_id: bytes = b""
    source_epoch: int = -1
    target_id: bytes = b""

    def are_known_as(self, other: "LogIdentity") -> bool:
        """Whether both topics are known, and are the same as the other's."""
        ids = (self.source_id, other.source_id), (self.target_id, other.target_id)
        return all(one and one == another for one, another in ids)


UNKNOWN_LOGS = LogIdentity()


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions' numbers by topic, as most requests name them."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


def encode_topic_id(topic_id: bytes) -> str:
    """Encode a topic's id as our JSON records have it: base64, empty where the id is not known."""
    return base64.b64encode(topic_id).decode()


def decode_topic_id(text: str) -> bytes:
    """Raises ValueError."""
    return base64.b64decode(text)


def is_another(known: bytes, current: bytes) -> bool:
    """Whether these are the ids of two topics, as far as is known."""
    return bool(known and current) and known != current
