"""Describes the configs of many topics, in requests of bounded size.

Most topics of a cluster have the same configs, which a broker writes in the same bytes. Decoded configs are
found again by their bytes and shared, so that thousands of topics cost little time and memory.
"""

import struct
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from sparkmirror.domain.topics import ConfigEntry, ConfigSource
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.raw_requests import Api
from sparkmirror.kafka.wire.primitives import NO_TAGS, Reader, array_size, string

DESCRIBE_CONFIGS: Final = Api(32, "DescribeConfigs", 1, 4, flexible_from=4)
_DOCUMENTATION_FROM: Final = 3
_TOPIC: Final = b"\x02"
_TOPICS_PER_REQUEST: Final = 250
"""A topic has some 35 configs of 60 bytes: half a megabyte a response."""

_KINDS_KEPT: Final = 32
_ENTRY_FLAGS: Final = struct.Struct(">bbb")  # read only, source, sensitive


class DescribedTopic(NamedTuple):
    """`entries` has the configs, defaults included; `error` is 0 or Kafka's code."""

    topic: str
    entries: tuple[ConfigEntry, ...]
    error: int = 0
    message: str | None = None


class TopicConfigsReader:
    """Every method blocks. One owner."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: deque[tuple[bytes, tuple[ConfigEntry, ...]]] = deque(maxlen=_KINDS_KEPT)
        """Configs in a broker's bytes, and decoded; the last that was found comes first."""

    def describe(self, topics: Collection[str], names: Collection[str] = ()) -> Iterator[DescribedTopic]:
        """Describe each topic's configs of these names, all if none are given. Raises KafkaError."""
        wanted = list(topics)
        for at in range(0, len(wanted), _TOPICS_PER_REQUEST):
            asked = wanted[at : at + _TOPICS_PER_REQUEST]
            body = partial(encode_body, asked, names)
            yield from self._cluster.call("describe topic configs", DESCRIBE_CONFIGS, body, self._decoded)

    def _decoded(self, reader: Reader, version: int) -> Sequence[DescribedTopic]:
        reader.data = memoryview(bytes(reader.data))
        described = []
        for _ in range(reader.array_size()):
            error, message = reader.int16(), reader.string()
            reader.at += 1  # the resource type: a topic
            topic = reader.string() or ""
            described.append(DescribedTopic(topic, self._entries(reader, version), error, message))
            reader.skip_tags()
        return described

    def _entries(self, reader: Reader, version: int) -> tuple[ConfigEntry, ...]:
        # An encoding marks its own end, so entries that begin with known bytes are the known entries.
        for number, (encoded, entries) in enumerate(self._known):
            if reader.data[reader.at : reader.at + len(encoded)] == encoded:
                reader.at += len(encoded)
                if number:
                    del self._known[number]
                    self._known.appendleft((encoded, entries))
                return entries
        start = reader.at
        entries = tuple([_entry(reader, version) for _ in range(reader.array_size())])
        self._known.appendleft((bytes(reader.data[start : reader.at]), entries))
        return entries


def encode_body(topics: Sequence[str], names: Collection[str], version: int) -> bytes:
    flexible = version >= DESCRIBE_CONFIGS.flexible_from
    tags = NO_TAGS if flexible else b""
    wanted = array_size(len(names) or -1, compact=flexible)
    wanted += b"".join(string(name, compact=flexible) for name in names)
    parts = [array_size(len(topics), compact=flexible)]
    parts += [_TOPIC + string(topic, compact=flexible) + wanted + tags for topic in topics]
    parts.append(b"\x00")  # no synonyms
    parts.append(b"\x00" if version >= _DOCUMENTATION_FROM else b"")
    return b"".join([*parts, tags])


def _entry(reader: Reader, version: int) -> ConfigEntry:
    name, value = reader.string() or "", reader.string()
    is_read_only, source, is_sensitive = reader.unpack(_ENTRY_FLAGS)
    for _ in range(reader.array_size()):  # synonyms
        reader.string()
        reader.string()
        reader.at += 1
        reader.skip_tags()
    if version >= _DOCUMENTATION_FROM:
        reader.at += 1  # the value's type
        reader.string()
    reader.skip_tags()
    return ConfigEntry(
        name,
        value,
        ConfigSource(source),
        is_read_only=bool(is_read_only),
        is_sensitive=bool(is_sensitive),
    )
