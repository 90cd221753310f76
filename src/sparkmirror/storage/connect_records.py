"""Source positions as Kafka Connect keeps them in its offsets topic, byte for byte.

Java looks positions up by the raw bytes of the key, so the order of fields and the escapes are those that
its JSON writer (Jackson) produces for MirrorSourceConnector. The offset is the last replicated one.
"""

import json
from dataclasses import dataclass

from sparkmirror.domain.connect_json import quoted


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """Whose position a record of the offsets topic holds."""

    connector: str
    cluster_alias: str
    topic: str
    partition: int


def source_position_key(source: SourcePartition) -> bytes:
    """The key under which Connect finds a MirrorSourceConnector's position."""
    connector, cluster, topic = map(quoted, (source.connector, source.cluster_alias, source.topic))
    return f'[{connector},{{"cluster":{cluster},"partition":{source.partition},"topic":{topic}}}]'.encode()


def source_position_value(offset: int) -> bytes:
    """The value for a last replicated offset; to forget a position, Connect writes null instead."""
    return b'{"offset":%d}' % offset


def parse_source_position_key(key: bytes | None) -> SourcePartition | None:
    """Read a key in any order of fields; None for what is malformed or another connector's kind of key."""
    match _parsed(key):
        case [
            str(connector),
            {"cluster": str(cluster), "topic": str(topic), "partition": int(partition)},
        ] if not isinstance(partition, bool):
            return SourcePartition(connector, cluster, topic, partition)
        case _:
            return None


def parse_source_position_value(value: bytes | None) -> int | None:
    """The last replicated offset; None when it was forgotten, never set, or the value is malformed."""
    match _parsed(value):
        case {"offset": int(offset)} if not isinstance(offset, bool) and offset >= 0:
            return offset
        case _:
            return None


def _parsed(text: bytes | None) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
