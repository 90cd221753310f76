"""Describes the members of consumer groups, classic ones and those of the new protocol (KIP-848).

ConsumerGroupDescribe is encoded and decoded by hand: the library lacks it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.raw_requests import Api, call
from sparkmirror.kafka.wire.error_codes import NONE
from sparkmirror.kafka.wire.primitives import NO_TAGS, Reader, array_size, string

_CONSUMER_GROUP_DESCRIBE: Final = Api(69, "ConsumerGroupDescribe", 0, 0, flexible_from=0)
_INT32, _TOPIC_ID = 4, 16


class Member(NamedTuple):
    """A member's client id and host."""

    client_id: str
    host: str

    def __str__(self) -> str:
        return f"{self.client_id} at {self.host.removeprefix('/')}"


Members = Mapping[GroupId, Sequence[Member] | KafkaError]


def classic_members(
    connection: Connection, groups: Sequence[GroupId], timeout_s: float, cluster: Cluster
) -> Members:
    """Members of groups of the classic protocol; a KafkaError for others. Raises KafkaError."""
    response = connection.request(
        DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False),
        DescribeGroupsResponse,
        timeout_s=timeout_s,
    )
    return {
        GroupId(group.group_id): _error(
            group.error_code, group.group_id, getattr(group, "error_message", None), cluster
        )
        or [Member(member.client_id, member.client_host) for member in group.members]
        for group in response.groups
    }


def consumer_members(
    connection: Connection, groups: Sequence[GroupId], timeout_s: float, cluster: Cluster
) -> Members:
    """Members of groups of the new protocol; a KafkaError for others. Raises KafkaError."""

    def decode(reader: Reader, _version: int) -> Members:
        return dict(_group(reader, cluster) for _ in range(reader.array_size()))

    body = array_size(len(groups), compact=True) + b"".join(string(group, compact=True) for group in groups)
    body += b"\0" + NO_TAGS  # authorized operations are not asked for
    return call(connection, _CONSUMER_GROUP_DESCRIBE, lambda _version: body, decode, timeout_s)


def _group(reader: Reader, cluster: Cluster) -> tuple[GroupId, Sequence[Member] | KafkaError]:
    code, message, group = reader.int16(), reader.string(), reader.string() or ""
    reader.string()  # state
    reader.at += 2 * _INT32  # epochs of the group and of its assignment
    reader.string()  # assignor
    members = [_member(reader) for _ in range(reader.array_size())]
    reader.at += _INT32  # authorized operations
    reader.skip_tags()
    return GroupId(group), _error(code, group, message, cluster) or members


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


def _error(code: int, group: str, message: str | None, cluster: Cluster) -> KafkaError | None:
    if code == NONE:
        return None
    return cluster.error(code, f"describe group {group}", Need.DESCRIBE_GROUP.of(group), message=message)
