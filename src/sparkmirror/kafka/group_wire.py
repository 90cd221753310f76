"""The requests by which a member takes part in a group of the classic protocol, and what refusals mean.

Members are of a protocol type of our own, so that a group has either our nodes or other members, such as
workers of Java's Kafka Connect: coordinators refuse who comes second with INCONSISTENT_GROUP_PROTOCOL.
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
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.group_assignment import GroupOptions
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    NONE,
    UNKNOWN_SERVER_ERROR,
    Needed,
    error_for,
    name_of,
)
from sparkmirror.kafka.group_members import classic_members
from sparkmirror.kafka.metadata import Address

INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_SESSION_TIMEOUT: Final = 26
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82

PROTOCOL_TYPE: Final = "sparkmirror"
PROTOCOL: Final = "leader-v1"

_GROUP_KEY: Final = 0
_FIND_ONE_KEY_VERSION_MAX: Final = 3
_LEAVE_SEVERAL_FROM: Final = 3


class Seat(NamedTuple):
    """What a coordinator knows a member by."""

    group_id: str
    member_id: str
    generation: int


class Joined(NamedTuple):
    """The answer to JoinGroup. `candidates` is the metadata of every member, for the leader alone."""

    code: int
    generation: int
    member_id: str
    is_leader: bool
    candidates: Mapping[str, bytes]


class Synced(NamedTuple):
    code: int
    assignment: bytes


def find_coordinator(
    connection: Connection, group_id: str, settings: ConnectionSettings, timeout_s: float
) -> Address:
    """Raises KafkaError."""
    response = connection.request(
        FindCoordinatorRequest(key=group_id, key_type=_GROUP_KEY),
        FindCoordinatorResponse,
        timeout_s=timeout_s,
        version_max=_FIND_ONE_KEY_VERSION_MAX,
    )
    if response.error_code != NONE:
        raise group_error(response.error_code, group_id, "FindCoordinator", settings=settings)
    if not response.host:
        raise group_error(COORDINATOR_NOT_AVAILABLE, group_id, "FindCoordinator", settings=settings)
    return response.host, response.port


def join(
    connection: Connection, options: GroupOptions, member_id: str, metadata: bytes, timeout_s: float
) -> Joined:
    """Answered when every member has joined again, or the rebalance time-out has passed for the others."""
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
    answer = connection.request(request, JoinGroupResponse, timeout_s=timeout_s)
    candidates = {member.member_id: bytes(member.metadata) for member in answer.members}
    is_leader = bool(answer.member_id) and answer.leader == answer.member_id
    return Joined(answer.error_code, answer.generation_id, answer.member_id, is_leader, candidates)


def sync(connection: Connection, seat: Seat, assignments: Mapping[str, bytes], timeout_s: float) -> Synced:
    """Answered when the group's leader has sent the assignments; only the leader sends any."""
    request = SyncGroupRequest(
        group_id=seat.group_id,
        generation_id=seat.generation,
        member_id=seat.member_id,
        group_instance_id=None,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=PROTOCOL,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assignments.items()
        ],
    )
    answer = connection.request(request, SyncGroupResponse, timeout_s=timeout_s)
    return Synced(answer.error_code, bytes(answer.assignment or b""))


def heartbeat(connection: Connection, seat: Seat, timeout_s: float) -> int:
    """The answer's code."""
    request = HeartbeatRequest(
        group_id=seat.group_id,
        generation_id=seat.generation,
        member_id=seat.member_id,
        group_instance_id=None,
    )
    answer: Any = connection.request(request, HeartbeatResponse, timeout_s=timeout_s)
    return int(answer.error_code)


def leave(connection: Connection, seat: Seat, timeout_s: float) -> None:
    """Whatever the answer is: who is no member has left."""
    offered = connection.versions.get(LeaveGroupRequest.API_KEY)
    if offered is not None and offered.high >= _LEAVE_SEVERAL_FROM:
        member = LeaveGroupRequest.MemberIdentity(
            member_id=seat.member_id, group_instance_id=None, reason="the worker stops"
        )
        request = LeaveGroupRequest(group_id=seat.group_id, members=[member])
    else:
        request = LeaveGroupRequest(group_id=seat.group_id, member_id=seat.member_id)
    connection.request(request, LeaveGroupResponse, timeout_s=timeout_s)


def group_error(
    code: int, group_id: str, request: str, *, settings: ConnectionSettings, held_by: str = ""
) -> KafkaError:
    """What a refusal means, and what to do. `held_by` names members of another kind."""
    context = f"group {group_id}: {request}"
    if code == INCONSISTENT_GROUP_PROTOCOL:
        who = f" ({held_by})" if held_by else ""
        return KafkaError(
            f"{context}: {name_of(code)}: the group has members of another kind{who}: workers of Java's "
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


def members_of(connection: Connection, group_id: str, timeout_s: float) -> str:
    """By name, as far as the coordinator tells."""
    try:
        found = classic_members(connection, [GroupId(group_id)], timeout_s)[GroupId(group_id)]
    except KafkaError:
        return ""
    return "" if isinstance(found, KafkaError) else ", ".join(map(str, found))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
