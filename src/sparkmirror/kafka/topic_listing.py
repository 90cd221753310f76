"""Every topic of a cluster, asked for again and again at little cost.

A Metadata answer about 20,000 topics is 2 MB, which a broker writes and a comparison reads in milliseconds;
decoding it takes a hundred times as long. So an answer with the same topics, byte for byte, is the listing
that was made of the one before. Brokers keep the order of topics, but name any of them as the controller, so
only the part about the topics is compared.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from sparkmirror.domain.listed_topics import ListedTopic, TopicListing
from sparkmirror.kafka.cluster import UNREADABLE, Answer, AnyBroker, Api
from sparkmirror.kafka.wire import (
    NO_TAGS,
    NO_TOPIC_ID,
    TOPIC_ID_BYTES,
    Reader,
    array_size,
    string,
)

_METADATA: Final = Api(3, "Metadata", 7, 12, flexible_from=9)
"""Of Kafka 2.1 and newer, as the engine's Produce."""

_RIGHTS_FROM, _RIGHTS_OF_CLUSTER_UNTIL = 8, 10
_IDS_FROM: Final = 10
_PARTITION_BYTES: Final = 14
"""Error, number, leader, leader epoch."""
_REPLICA_LISTS: Final = 3
"""All of them, those in sync, those off line."""
_ONE_BYTE_MAX: Final = 0x7F
_NO_ID: Final = bytes(TOPIC_ID_BYTES)
_NAMES_PER_REQUEST: Final = 1000


class TopicLister:
    """Every method blocks. One owner."""

    def __init__(self, broker: AnyBroker) -> None:
        self._broker = broker
        self._seen: memoryview | None = None
        self._listing = TopicListing({})

    def read(self) -> TopicListing:
        """Every topic: the same object as before while nothing has changed. Raises KafkaError."""
        answer = self._ask("list topics", None)
        topics = answer.reader.data[answer.reader.at :]
        if topics != self._seen:
            self._listing = TopicListing(self._decoded(answer))
            self._seen = topics
        return self._listing

    def named(self, topics: Collection[str]) -> Mapping[str, ListedTopic]:
        """What is said of each of these, by name. Raises KafkaError.

        Unlike in a listing, a topic that is missing and one that may not be described can be told apart: by
        the errors UNKNOWN_TOPIC_OR_PARTITION and TOPIC_AUTHORIZATION_FAILED.
        """
        names = sorted(topics)
        found: dict[str, ListedTopic] = {}
        for at in range(0, len(names), _NAMES_PER_REQUEST):
            found |= self._decoded(self._ask("describe topics", names[at : at + _NAMES_PER_REQUEST]))
        return found

    def _ask(self, action: str, names: Collection[str] | None) -> Answer:
        """The answer, read up to its topics."""
        answer = self._broker.ask(action, _METADATA, lambda version: encode_body(names, version))
        try:
            _skip_to_topics(answer.reader)
        except UNREADABLE as error:
            raise self._broker.unreadable(_METADATA) from error
        return answer

    def _decoded(self, answer: Answer) -> dict[str, ListedTopic]:
        data = bytes(answer.reader.data[answer.reader.at :])
        try:
            return dict(decode_topics(data, answer.version))
        except UNREADABLE as error:
            raise self._broker.unreadable(_METADATA) from error


def encode_body(names: Collection[str] | None, version: int) -> bytes:
    """A request about these topics, or all of them if None. Asking makes no topic."""
    flexible = version >= _METADATA.flexible_from
    topic_id, tags = _NO_ID if version >= _IDS_FROM else b"", NO_TAGS if flexible else b""
    parts = [array_size(-1 if names is None else len(names), compact=flexible)]
    parts += [topic_id + string(name, compact=flexible) + tags for name in names or ()]
    parts.append(b"\x00")  # whether to create them
    parts.append(b"\x00" if _RIGHTS_FROM <= version <= _RIGHTS_OF_CLUSTER_UNTIL else b"")
    parts.append(b"\x00" if version >= _RIGHTS_FROM else b"")  # of the topics
    return b"".join([*parts, tags])


def _skip_to_topics(reader: Reader) -> None:
    """Over the time of throttling, the brokers, the cluster's id and the controller."""
    reader.int32()
    for _ in range(reader.array_size()):
        reader.int32()
        reader.string()
        reader.int32()
        reader.string()
        reader.skip_tags()
    reader.string()
    reader.int32()


def decode_topics(data: bytes, version: int) -> Iterator[tuple[str, ListedTopic]]:
    """Names and what is said of them. Raises one of UNREADABLE where it ends too early."""
    return (
        _decode_compact(data, version) if version >= _METADATA.flexible_from else _decode_plain(data, version)
    )


def _decode_compact(data: bytes, version: int) -> Iterator[tuple[str, ListedTopic]]:
    """The loop that is hot: no call per field, and nothing is taken in that isn't told."""
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
                at += 4 * size - 3  # the byte that says how many more one, and as many numbers
            at = at + 1 if data[at] == 0 else _behind_tags(data, at)
        at += topic_tail
        at = at + 1 if data[at] == 0 else _behind_tags(data, at)
        yield name, ListedTopic(partitions - 1, _known(topic_id), is_internal, error)


def _decode_plain(data: bytes, version: int) -> Iterator[tuple[str, ListedTopic]]:
    """Of brokers before Kafka 2.4."""
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
                reader.at += 4 * replicas
        reader.at += 4 if version >= _RIGHTS_FROM else 0
        yield name, ListedTopic(partitions, NO_TOPIC_ID, is_internal, error)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends."""
    value = data[at]
    at += 1
    if value > _ONE_BYTE_MAX:
        value &= _ONE_BYTE_MAX
        shift = 7
        while data[at] > _ONE_BYTE_MAX:
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
