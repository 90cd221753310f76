"""Sends the requests of a member of a classic consumer group, and explains refusals.

Members are of a protocol type of our own, so that a group has either our nodes or other members, such as
workers of Java's Kafka Connect: coordinators refuse the second kind with INCONSISTENT_GROUP_PROTOCOL.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.condition_timer import ConditionTimer
from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.leader_election import GroupOptions
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.groups.consumer_group_members import classic_members
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.error_codes import (
    GROUP_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    Needed,
    error_for,
    name_of,
)

INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_SESSION_TIMEOUT: Final = 26
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82

PROTOCOL_TYPE: Final = "sparkmirror"
PROTOCOL: Final = "leader-v1"

_LEAVE_SEVERAL_FROM: Final = 3
OTHER_SESSIONS: Final = 2.5
"""Session time-outs after which members of another kind are known to live: a session, and a rebalance."""


class MemberIdentity(NamedTuple):
    """Identifies a member to its coordinator."""

    group_id: str
    member_id: str
    generation: int


class HeldGroup:
    """Measures how long members of another kind have kept a node out of its group."""

    def __init__(self, options: GroupOptions) -> None:
        self._group_id = options.group_id
        self._waits_s = OTHER_SESSIONS * options.session_timeout_s
        self._held = ConditionTimer()

    def check(self, held_by: str, now: float) -> None:
        """Raises RetriableError while the members may be gone, because their sessions have not ended yet."""
        if self._held.for_s(now) < self._waits_s:
            raise RetriableError(
                f"group {self._group_id}: waits up to {self._waits_s:g} s for members of another kind "
                f"({held_by or 'unknown'}): a process that was killed is one until its session ends",
                INCONSISTENT_GROUP_PROTOCOL,
            )

    def end(self) -> None:
        self._held.end()


class Joined(NamedTuple):
    """The response to JoinGroup. `candidates` is the metadata of every member, for the leader alone."""

    code: int
    generation: int
    member_id: str
    is_leader: bool
    candidates: Mapping[str, bytes]


class Synced(NamedTuple):
    code: int
    assignment: bytes


def join(
    connection: Connection, options: GroupOptions, member_id: str, metadata: bytes, timeout_s: float
) -> Joined:
    """Return when every member has joined again, or the rebalance time-out has passed for the others."""
    request = JoinGroupRequest(
        group_id=options.group_id,
        session_timeout_ms=_ms(options.session_timeout_s),
        rebalance_timeout_ms=_ms(options.rebalance_timeout_s),
        member_id=member_id,
        group_instance_id=None,
        protocol_type=PROTOCOL_TYPE,
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata)],
        reason=None,
    )
    response = connection.request(request, JoinGroupResponse, timeout_s=timeout_s)
    candidates = {member.member_id: bytes(member.metadata) for member in response.members}
    is_leader = bool(response.member_id) and response.leader == response.member_id
    return Joined(response.error_code, response.generation_id, response.member_id, is_leader, candidates)


def sync(
    connection: Connection, member: MemberIdentity, assignments: Mapping[str, bytes], timeout_s: float
) -> Synced:
    """Return when the group's leader has sent the assignments; only the leader sends any."""
    request = SyncGroupRequest(
        group_id=member.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=None,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=PROTOCOL,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assignments.items()
        ],
    )
    response = connection.request(request, SyncGroupResponse, timeout_s=timeout_s)
    return Synced(response.error_code, bytes(response.assignment or b""))


def heartbeat(connection: Connection, member: MemberIdentity, timeout_s: float) -> int:
    """The response's error code."""
    request = HeartbeatRequest(
        group_id=member.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=None,
    )
    response: Any = connection.request(request, HeartbeatResponse, timeout_s=timeout_s)
    return int(response.error_code)


def leave(connection: Connection, member: MemberIdentity, timeout_s: float) -> None:
    """Leave, whatever the response is: a client that is no member has left."""
    offered = connection.versions.get(LeaveGroupRequest.API_KEY)
    if offered is not None and offered.high >= _LEAVE_SEVERAL_FROM:
        leaving = LeaveGroupRequest.MemberIdentity(
            member_id=member.member_id, group_instance_id=None, reason="the worker stops"
        )
        request = LeaveGroupRequest(group_id=member.group_id, members=[leaving])
    else:
        request = LeaveGroupRequest(group_id=member.group_id, member_id=member.member_id)
    connection.request(request, LeaveGroupResponse, timeout_s=timeout_s)


def group_error(
    code: int, group_id: str, request: str, *, settings: ConnectionSettings, held_by: str = ""
) -> KafkaError:
    """The error for a refusal, with a remedy. `held_by` names members of another kind."""
    context = f"group {group_id}: {request}"
    if code == INCONSISTENT_GROUP_PROTOCOL:
        members = f" ({held_by})" if held_by else ""
        return KafkaError(
            f"{context}: {name_of(code)}: the group has members of another kind{members}: workers of Java's "
            "Kafka Connect, as a rule. Stop them first, or choose another group.id",
            code,
        )
    if code == GROUP_AUTHORIZATION_FAILED:
        return error_for(code, context, needed=Needed(settings, (Need.READ_GROUP.of(group_id),)))
    if code == INVALID_SESSION_TIMEOUT:
        return error_for(
            code,
            context,
            "session.timeout.ms must be between group.min.session.timeout.ms and "
            "group.max.session.timeout.ms of the brokers",
        )
    if code == GROUP_MAX_SIZE_REACHED:
        return error_for(code, context, "it has as many members as group.max.size of the brokers allows")
    if code == UNKNOWN_SERVER_ERROR:
        return RetriableError(f"{context}: {name_of(code)}", code)
    return error_for(code, context)


def members_of(connection: Connection, group_id: str, timeout_s: float, cluster: Cluster) -> str:
    """The members' names; empty where the coordinator does not list them."""
    try:
        found = classic_members(connection, [GroupId(group_id)], timeout_s, cluster)[GroupId(group_id)]
    except KafkaError:
        return ""
    return "" if isinstance(found, KafkaError) else ", ".join(map(str, found))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
