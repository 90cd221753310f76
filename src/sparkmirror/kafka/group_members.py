"""Who is in a consumer group: DescribeGroups for classic groups, ConsumerGroupDescribe for others (KIP-848).

The second is encoded and read by hand: the library lacks it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import NONE, Needed, error_for
from sparkmirror.kafka.wire import NO_TAGS, Reader, array_size, request_header, string

_CONSUMER_GROUP_DESCRIBE: Final = 69
_VERSION: Final = 0
_INT32, _TOPIC_ID = 4, 16


class Member(NamedTuple):
    """By the names that its own configuration and the network give it."""

    client_id: str
    host: str

    def __str__(self) -> str:
        return f"{self.client_id} at {self.host.removeprefix('/')}"


Members = Mapping[GroupId, Sequence[Member] | KafkaError]


def classic_members(
    connection: Connection,
    groups: Sequence[GroupId],
    timeout_s: float,
    settings: ConnectionSettings | None = None,
) -> Members:
    """Members of groups of the classic protocol; a KafkaError for others. Raises KafkaError."""
    response = connection.request(
        DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False),
        DescribeGroupsResponse,
        timeout_s=timeout_s,
    )
    return {
        GroupId(group.group_id): _error(
            group.error_code, group.group_id, getattr(group, "error_message", None), settings
        )
        or [Member(member.client_id, member.client_host) for member in group.members]
        for group in response.groups
    }


def consumer_members(
    connection: Connection,
    groups: Sequence[GroupId],
    timeout_s: float,
    settings: ConnectionSettings | None = None,
) -> Members:
    """Members of groups of the new protocol; a KafkaError for others. Raises KafkaError."""
    version = connection.version_of(_CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", _VERSION, _VERSION)
    correlation_id = connection.next_correlation_id()
    header = request_header(
        _CONSUMER_GROUP_DESCRIBE, version, correlation_id, connection.client_id, flexible=True
    )
    body = header + array_size(len(groups), compact=True)
    body += b"".join(string(group, compact=True) for group in groups)
    body += b"\0" + NO_TAGS  # authorized operations are not asked for
    frame = connection.ask([len(body).to_bytes(4), body], "ConsumerGroupDescribe", timeout_s)
    reader = Reader(frame, flexible=True)
    reader.int32()  # correlation id
    reader.skip_tags()
    reader.int32()  # throttle time
    return dict(_group(reader, settings) for _ in range(reader.array_size()))


def _group(
    reader: Reader, settings: ConnectionSettings | None
) -> tuple[GroupId, Sequence[Member] | KafkaError]:
    code, message, group = reader.int16(), reader.string(), reader.string() or ""
    reader.string()  # state
    reader.at += 2 * _INT32  # epochs of the group and of its assignment
    reader.string()  # assignor
    members = [_member(reader) for _ in range(reader.array_size())]
    reader.at += _INT32  # authorized operations
    reader.skip_tags()
    return GroupId(group), _error(code, group, message, settings) or members


def _member(reader: Reader) -> Member:
    for _ in range(3):  # ids of member, instance, rack
        reader.string()
    reader.at += _INT32  # epoch
    client_id, host = reader.string() or "", reader.string() or ""
    for _ in range(reader.array_size()):  # subscribed topics
        reader.string()
    reader.string()  # subscribed regex
    for _ in range(2):  # the assignment now, and the one to come
        for _ in range(reader.array_size()):
            reader.at += _TOPIC_ID
            reader.string()
            partitions = reader.array_size()
            reader.at += _INT32 * partitions
            reader.skip_tags()
        reader.skip_tags()
    reader.skip_tags()
    return Member(client_id, host)


def _error(
    code: int, group: str, message: str | None, settings: ConnectionSettings | None
) -> KafkaError | None:
    if code == NONE:
        return None
    needed = None if settings is None else Needed(settings, (Need.DESCRIBE_GROUP.of(group),))
    return error_for(code, f"describe group {group}", message, needed)
