"""Lists every topic of a cluster repeatedly at little cost.

A Metadata response about 20,000 topics is 2 MB, which a broker writes and a comparison reads in milliseconds;
decoding it takes a hundred times as long. So for a response with the same topics, byte for byte, the listing
of the one before is returned. Brokers keep the order of topics, but name any of them as the controller, so
only the part about the topics is compared.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Final

from sparkmirror.domain.topics import ListedTopic, TopicListing
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.raw_requests import Api
from sparkmirror.kafka.wire.primitives import (
    NO_TAGS,
    NO_TOPIC_ID,
    TOPIC_ID_BYTES,
    VARINT_SHIFT_MAX,
    Reader,
    array_size,
    string,
)

_METADATA: Final = Api(3, "Metadata", 7, 12, flexible_from=9)
"""The version that Kafka 2.1 and newer support, like the engine's Produce."""

_RIGHTS_FROM, _RIGHTS_OF_CLUSTER_UNTIL = 8, 10
_IDS_FROM: Final = 10
_PARTITION_BYTES: Final = 14
"""Error, partition, leader, leader epoch."""
_REPLICA_LISTS: Final = 3
"""Replicas, in-sync replicas, offline replicas."""
_ONE_BYTE_MAX: Final = 0x7F
_NO_ID: Final = bytes(TOPIC_ID_BYTES)
_NAMES_PER_REQUEST: Final = 1000


class TopicLister:
    """Every method blocks. One owner."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: memoryview | None = None
        self._listing = TopicListing({})

    def read(self) -> TopicListing:
        """Every topic: the same object as before while nothing has changed. Raises KafkaError."""
        return self._cluster.call("list topics", _METADATA, partial(encode_body, None), self._listed)

    def named(self, topics: Collection[str]) -> Mapping[str, ListedTopic]:
        """Return these topics by name. Raises KafkaError.

        Unlike in a listing, a topic that is missing and one that may not be described can be distinguished:
        by the errors UNKNOWN_TOPIC_OR_PARTITION and TOPIC_AUTHORIZATION_FAILED.
        """
        names = sorted(topics)
        found: dict[str, ListedTopic] = {}
        for at in range(0, len(names), _NAMES_PER_REQUEST):
            body = partial(encode_body, names[at : at + _NAMES_PER_REQUEST])
            found |= self._cluster.call("describe topics", _METADATA, body, _decoded)
        return found

    def _listed(self, reader: Reader, version: int) -> TopicListing:
        _skip_to_topics(reader)
        topics = reader.data[reader.at :]
        if topics != self._seen:
            self._listing = TopicListing(dict(decode_topics(bytes(topics), version)))
            self._seen = topics
        return self._listing


def _decoded(reader: Reader, version: int) -> dict[str, ListedTopic]:
    _skip_to_topics(reader)
    return dict(decode_topics(bytes(reader.data[reader.at :]), version))


def encode_body(names: Collection[str] | None, version: int) -> bytes:
    """A request about these topics, or all of them if None. It creates no topic."""
    flexible = version >= _METADATA.flexible_from
    topic_id, tags = _NO_ID if version >= _IDS_FROM else b"", NO_TAGS if flexible else b""
    parts = [array_size(-1 if names is None else len(names), compact=flexible)]
    parts += [topic_id + string(name, compact=flexible) + tags for name in names or ()]
    parts.append(b"\x00")  # no creation of topics
    parts.append(b"\x00" if _RIGHTS_FROM <= version <= _RIGHTS_OF_CLUSTER_UNTIL else b"")
    parts.append(b"\x00" if version >= _RIGHTS_FROM else b"")  # operations allowed on topics
    return b"".join([*parts, tags])


def _skip_to_topics(reader: Reader) -> None:
    """Skip brokers, cluster id and controller."""
    for _ in range(reader.array_size()):
        reader.int32()
        reader.string()
        reader.int32()
        reader.string()
        reader.skip_tags()
    reader.string()
    reader.int32()


def decode_topics(data: bytes, version: int) -> Iterator[tuple[str, ListedTopic]]:
    """Topics by name. Raises one of UNREADABLE where the data ends too early."""
    return (
        _decode_compact(data, version) if version >= _METADATA.flexible_from else _decode_plain(data, version)
    )


def _decode_compact(data: bytes, version: int) -> Iterator[tuple[str, ListedTopic]]:
    """The hot loop: no call per field, and nothing is decoded that is not used."""
    count, at = _varint(data, 0)
    id_bytes = TOPIC_ID_BYTES if version >= _IDS_FROM else 0
    topic_tail = 4 if version >= _RIGHTS_FROM else 0
    for _ in range(count - 1):
        error = data[at] << 8 | data[at + 1]
        size, at = _varint(data, at + 2)
        end = at + size - 1
        name = data[at:end].decode()
        at = end + id_bytes
        topic_id = data[end:at]
        is_internal = data[at] != 0
        partitions, at = _varint(data, at + 1)
        for _ in range(partitions - 1):
            at += _PARTITION_BYTES
            for _ in range(_REPLICA_LISTS):
                size = data[at]
                if size > _ONE_BYTE_MAX:
                    size, at = _varint(data, at)
                    at -= 1
                at += 4 * size - 3  # the size byte, and as many ids
            at = at + 1 if data[at] == 0 else _behind_tags(data, at)
        at += topic_tail
        at = at + 1 if data[at] == 0 else _behind_tags(data, at)
        yield name, ListedTopic(partitions - 1, _known(topic_id), is_internal, error)


def _decode_plain(data: bytes, version: int) -> Iterator[tuple[str, ListedTopic]]:
    """Responses of brokers before Kafka 2.4."""
    reader = Reader(memoryview(data), flexible=False)
    for _ in range(reader.array_size()):
        error = reader.int16()
        name = reader.string() or ""
        is_internal = data[reader.at] != 0
        reader.at += 1
        partitions = reader.array_size()
        for _ in range(partitions):
            reader.at += _PARTITION_BYTES
            for _ in range(_REPLICA_LISTS):
                replicas = reader.array_size()
                reader.at += 4 * max(replicas, 0)
        reader.at += 4 if version >= _RIGHTS_FROM else 0
        yield name, ListedTopic(partitions, NO_TOPIC_ID, is_internal, error)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint, and the index behind it."""
    value = data[at]
    at += 1
    if value > _ONE_BYTE_MAX:
        value &= _ONE_BYTE_MAX
        shift = 7
        while data[at] > _ONE_BYTE_MAX:
            if shift > VARINT_SHIFT_MAX:
                raise ValueError("a number has more than 5 bytes")
            value |= (data[at] & _ONE_BYTE_MAX) << shift
            shift += 7
            at += 1
        value |= data[at] << shift
        at += 1
    return value, at


def _behind_tags(data: bytes, at: int) -> int:
    count, at = _varint(data, at)
    for _ in range(count):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
    return at


def _known(topic_id: bytes) -> bytes:
    return NO_TOPIC_ID if topic_id == _NO_ID else topic_id
