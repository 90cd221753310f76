"""Groups of the classic protocol: members, generations, and the offsets that they commit."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from kafka.protocol.metadata import FindCoordinatorResponse

from sparkmirror.kafka.wire.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    ILLEGAL_GENERATION,
    NONE,
    NOT_COORDINATOR,
    OFFSET_METADATA_TOO_LARGE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)

if TYPE_CHECKING:
    from tests.memory.cluster import Cancellable, MemoryCluster
    from tests.memory.requests import Exchange

_INCONSISTENT_GROUP_PROTOCOL: Final = 23
_MEMBER_ID_REQUIRED: Final = 79
_SEVERAL_KEYS_FROM: Final = 4
_SEVERAL_LEAVE_FROM: Final = 3
_SEVERAL_GROUPS_FROM: Final = 8

Reply = Callable[[Any], None]


class Member:
    def __init__(self, member_id: str, request: Any) -> None:
        self.member_id = member_id
        self.protocol_type: str = request.protocol_type
        self.protocols: dict[str, bytes] = {
            protocol.name: bytes(protocol.metadata) for protocol in request.protocols
        }
        self.session_timeout_s = request.session_timeout_ms / 1000
        self.rebalance_timeout_s = request.rebalance_timeout_ms / 1000
        self.assignment = b""
        self.joining: Reply | None = None
        self.syncing: Reply | None = None
        self.expiry: Cancellable | None = None


class Group:
    """States: empty, joining (until all have joined again), syncing (until the leader has sent), stable."""

    def __init__(self, cluster: "MemoryCluster") -> None:
        self._cluster = cluster
        self.members: dict[str, Member] = {}
        self.pending: set[str] = set()
        self.generation = 0
        self.state = "Empty"
        self.leader = ""
        self.protocol = ""
        self.offsets: dict[tuple[str, int], tuple[int, str]] = {}
        self._deadline: Cancellable | None = None
        self._numbers = 0

    def new_member_id(self, client: str) -> str:
        self._numbers += 1
        return f"{client}-{self._numbers}"

    def join(self, member_id: str, request: Any, reply: Reply) -> None:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = Member(member_id, request)
        else:
            changed = Member(member_id, request)
            member.protocols = changed.protocols
        self.pending.discard(member_id)
        member.joining = reply
        self.touch(member)
        if self.state != "PreparingRebalance":
            self._rebalance()
        self._complete_join()

    def sync(self, member: Member, assignments: dict[str, bytes], reply: Reply) -> None:
        self.touch(member)
        if self.state == "Stable":
            reply(SyncGroupResponse(error_code=NONE, **self._named(), assignment=member.assignment))
            return
        member.syncing = reply
        if member.member_id == self.leader:
            for other in self.members.values():
                other.assignment = assignments.get(other.member_id, b"")
            self.state = "Stable"
            for other in self.members.values():
                if other.syncing is not None:
                    self.touch(other)
                    waiting, other.syncing = other.syncing, None
                    waiting(SyncGroupResponse(error_code=NONE, **self._named(), assignment=other.assignment))

    def leave(self, member_id: str) -> int:
        if member_id not in self.members:
            return UNKNOWN_MEMBER_ID
        self.remove(member_id)
        return NONE

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.expiry is not None:
            member.expiry.cancel()
        for waiting, response in ((member.joining, JoinGroupResponse), (member.syncing, SyncGroupResponse)):
            if waiting is not None:
                waiting(_refusal(response, UNKNOWN_MEMBER_ID))
        if self.state != "PreparingRebalance":
            self._rebalance()
        self._complete_join()

    def touch(self, member: Member) -> None:
        """The session continues for its time-out; who waits for others does not lose it."""
        if member.expiry is not None:
            member.expiry.cancel()
        member.expiry = self._cluster.scheduler.call_later(
            member.session_timeout_s, self._expire, member.member_id
        )

    def error_of(self, member_id: str, generation: int) -> int:
        if member_id not in self.members:
            return UNKNOWN_MEMBER_ID
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def _expire(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        if member.joining is not None:
            self.touch(member)
        else:
            self.remove(member_id)

    def _rebalance(self) -> None:
        for member in self.members.values():
            if member.syncing is not None:
                waiting, member.syncing = member.syncing, None
                waiting(_refusal(SyncGroupResponse, REBALANCE_IN_PROGRESS))
        if not self.members:
            self.state, self.leader = "Empty", ""
            self.generation += 1
            return
        self.state = "PreparingRebalance"
        timeout_s = max(member.rebalance_timeout_s for member in self.members.values())
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._cluster.scheduler.call_later(timeout_s, self._complete_join_late)

    def _complete_join_late(self) -> None:
        for member in list(self.members.values()):
            if member.joining is None:
                if member.expiry is not None:
                    member.expiry.cancel()
                del self.members[member.member_id]
        if not self.members:
            self.state = "Empty"
        self._complete_join()

    def _complete_join(self) -> None:
        waiting = [member for member in self.members.values() if member.joining is None]
        if self.state != "PreparingRebalance" or waiting or not self.members:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self.generation += 1
        self.state = "CompletingRebalance"
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = next(iter(self.members[self.leader].protocols))
        listed = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=None, metadata=member.protocols[self.protocol]
            )
            for member in self.members.values()
        ]
        for member in list(self.members.values()):
            reply, member.joining = member.joining, None
            assert reply is not None
            self.touch(member)
            reply(
                JoinGroupResponse(
                    error_code=NONE,
                    generation_id=self.generation,
                    **self._named(),
                    leader=self.leader,
                    skip_assignment=False,
                    member_id=member.member_id,
                    members=listed if member.member_id == self.leader else [],
                )
            )

    def _named(self) -> dict[str, str]:
        protocol_type = next(iter(self.members.values())).protocol_type
        return {"protocol_type": protocol_type, "protocol_name": self.protocol}


class Groups:
    """All groups of a cluster: which broker answers for one is `MemoryCluster.coordinator`."""

    def __init__(self, cluster: "MemoryCluster") -> None:
        self._cluster = cluster
        self.groups: dict[str, Group] = {}
        self.metadata_bytes_max = 4096
        self.refusals: dict[tuple[str, str], int] = {}
        """The error codes of commits, by group and topic."""

    def group(self, group_id: str) -> Group:
        return self.groups.setdefault(group_id, Group(self._cluster))


def _refusal(response: Any, error: int, member_id: str = "") -> Any:
    if response is JoinGroupResponse:
        return JoinGroupResponse(
            error_code=error,
            generation_id=-1,
            protocol_type="",
            protocol_name="",
            leader="",
            skip_assignment=False,
            member_id=member_id,
            members=[],
        )
    return SyncGroupResponse(error_code=error, protocol_type="", protocol_name="", assignment=b"")


def find_coordinator(exchange: "Exchange") -> Any:
    request = exchange.request

    def found(key: str) -> dict[str, Any]:
        broker = exchange.cluster.coordinator(key)
        if broker is None:
            return {"error_code": COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}
        return {"error_code": NONE, "node_id": broker.node_id, "host": broker.host, "port": broker.port}

    if exchange.version < _SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(**found(request.key), error_message=None)
    entry = FindCoordinatorResponse.Coordinator
    return FindCoordinatorResponse(
        coordinators=[entry(key=key, **found(key), error_message=None) for key in request.coordinator_keys]
    )


def _is_elsewhere(exchange: "Exchange", group_id: str) -> bool:
    return exchange.cluster.coordinator(group_id) is not exchange.broker


def join(exchange: "Exchange") -> Any:
    request = exchange.request
    if _is_elsewhere(exchange, request.group_id):
        return _refusal(JoinGroupResponse, NOT_COORDINATOR)
    group = exchange.cluster.groups.group(request.group_id)
    others = [member for member in group.members.values() if member.member_id != request.member_id]
    if others and not {p.name for p in request.protocols} & set(others[0].protocols):
        return _refusal(JoinGroupResponse, _INCONSISTENT_GROUP_PROTOCOL)
    member_id = request.member_id
    if not member_id:
        member_id = group.new_member_id("member")
        if exchange.version >= 4:
            group.pending.add(member_id)
            return _refusal(JoinGroupResponse, _MEMBER_ID_REQUIRED, member_id)
    elif member_id not in group.members and member_id not in group.pending:
        return _refusal(JoinGroupResponse, UNKNOWN_MEMBER_ID)
    group.join(member_id, request, exchange.reply)
    return None


def sync(exchange: "Exchange") -> Any:
    request = exchange.request
    if _is_elsewhere(exchange, request.group_id):
        return _refusal(SyncGroupResponse, NOT_COORDINATOR)
    group = exchange.cluster.groups.group(request.group_id)
    error = group.error_of(request.member_id, request.generation_id)
    if error == NONE and group.state == "PreparingRebalance":
        error = REBALANCE_IN_PROGRESS
    if error != NONE:
        return _refusal(SyncGroupResponse, error)
    assignments = {given.member_id: bytes(given.assignment) for given in request.assignments}
    group.sync(group.members[request.member_id], assignments, exchange.reply)
    return None


def heartbeat(exchange: "Exchange") -> Any:
    request = exchange.request
    group = exchange.cluster.groups.group(request.group_id)
    if _is_elsewhere(exchange, request.group_id):
        error = NOT_COORDINATOR
    else:
        error = group.error_of(request.member_id, request.generation_id)
    if error == NONE:
        group.touch(group.members[request.member_id])
        error = REBALANCE_IN_PROGRESS if group.state == "PreparingRebalance" else NONE
    return HeartbeatResponse(error_code=error)


def leave(exchange: "Exchange") -> Any:
    request = exchange.request
    group = exchange.cluster.groups.group(request.group_id)
    if _is_elsewhere(exchange, request.group_id):
        return LeaveGroupResponse(error_code=NOT_COORDINATOR, members=[])
    if exchange.version < _SEVERAL_LEAVE_FROM:
        return LeaveGroupResponse(error_code=group.leave(request.member_id))
    entry = LeaveGroupResponse.MemberResponse
    return LeaveGroupResponse(
        error_code=NONE,
        members=[
            entry(
                member_id=gone.member_id,
                group_instance_id=gone.group_instance_id,
                error_code=group.leave(gone.member_id),
            )
            for gone in request.members
        ],
    )


def commit_offsets(exchange: "Exchange") -> Any:
    request = exchange.request
    group = exchange.cluster.groups.group(request.group_id)
    error = NONE
    if _is_elsewhere(exchange, request.group_id):
        error = NOT_COORDINATOR
    elif request.generation_id_or_member_epoch >= 0:
        error = group.error_of(request.member_id, request.generation_id_or_member_epoch)
    elif group.members:
        error = UNKNOWN_MEMBER_ID
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            code = error or _commit_refusal(exchange, request.group_id, topic.name, asked)
            if code == NONE:
                committed = asked.committed_offset, asked.committed_metadata or ""
                group.offsets[topic.name, asked.partition_index] = committed
            answers.append(
                topic_class.OffsetCommitResponsePartition(
                    partition_index=asked.partition_index, error_code=code
                )
            )
        topics.append(topic_class(name=topic.name, partitions=answers))
    return OffsetCommitResponse(topics=topics)


def _commit_refusal(exchange: "Exchange", group_id: str, topic: str, asked: Any) -> int:
    groups = exchange.cluster.groups
    if topic not in exchange.cluster.topics:
        return UNKNOWN_TOPIC_OR_PARTITION
    if len(asked.committed_metadata or "") > groups.metadata_bytes_max:
        return OFFSET_METADATA_TOO_LARGE
    return groups.refusals.get((group_id, topic), NONE)


def fetch_offsets(exchange: "Exchange") -> Any:
    request = exchange.request
    if exchange.version < _SEVERAL_GROUPS_FROM:
        error = NOT_COORDINATOR if _is_elsewhere(exchange, request.group_id) else NONE
        topics = _offsets(exchange, request.group_id, request.topics, OffsetFetchResponse)
        return OffsetFetchResponse(topics=topics, error_code=error)
    group_class = OffsetFetchResponse.OffsetFetchResponseGroup
    return OffsetFetchResponse(
        groups=[
            group_class(
                group_id=asked.group_id,
                topics=_offsets(
                    exchange, asked.group_id, asked.topics, group_class, "OffsetFetchResponseTopics"
                ),
                error_code=NOT_COORDINATOR if _is_elsewhere(exchange, asked.group_id) else NONE,
            )
            for asked in request.groups
        ]
    )


def _offsets(
    exchange: "Exchange", group_id: str, asked: Any, owner: Any, name: str = "OffsetFetchResponseTopic"
) -> list[Any]:
    """Return offsets of the topics asked for, of all for None."""
    offsets = exchange.cluster.groups.group(group_id).offsets
    wanted: dict[str, list[int]] = {}
    if asked is None:
        for topic, partition in offsets:
            wanted.setdefault(topic, []).append(partition)
    else:
        wanted = {topic.name: list(topic.partition_indexes) for topic in asked}
    topic_class = getattr(owner, name)
    partition_class = getattr(topic_class, name.replace("Topic", "Partition"))
    return [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=partition,
                    committed_offset=offsets.get((topic, partition), (-1, ""))[0],
                    committed_leader_epoch=-1,
                    metadata=offsets.get((topic, partition), (-1, ""))[1],
                    error_code=NONE,
                )
                for partition in partitions
            ],
        )
        for topic, partitions in wanted.items()
    ]


def describe(exchange: "Exchange") -> Any:
    group_class = DescribeGroupsResponse.DescribedGroup

    def of_group(group_id: str) -> Any:
        group = exchange.cluster.groups.groups.get(group_id)
        members = [] if group is None else list(group.members.values())
        return group_class(
            error_code=NOT_COORDINATOR if _is_elsewhere(exchange, group_id) else NONE,
            group_id=group_id,
            group_state="Dead" if group is None else group.state,
            protocol_type=members[0].protocol_type if members else "",
            protocol_data="" if group is None else group.protocol,
            members=[
                group_class.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=None,
                    client_id="client",
                    client_host="/127.0.0.1",
                    member_metadata=next(iter(member.protocols.values())),
                    member_assignment=member.assignment,
                )
                for member in members
            ],
        )

    return DescribeGroupsResponse(groups=[of_group(group_id) for group_id in exchange.request.groups])


def list_groups(exchange: "Exchange") -> Any:
    entry = ListGroupsResponse.ListedGroup
    return ListGroupsResponse(
        error_code=NONE,
        groups=[
            entry(
                group_id=group_id,
                protocol_type=next((m.protocol_type for m in group.members.values()), ""),
                group_state=group.state,
                group_type="classic",
            )
            for group_id, group in exchange.cluster.groups.groups.items()
            if not _is_elsewhere(exchange, group_id)
        ],
    )
