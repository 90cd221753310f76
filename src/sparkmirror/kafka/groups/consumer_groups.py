"""Lists the consumer groups of a cluster and their members; reads, commits and deletes their offsets."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.admin.tried_rights import is_denied
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.groups.consumer_group_members import Member, classic_members, consumer_members
from sparkmirror.kafka.groups.group_coordinators import NOT_READY, GroupCoordinators
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.error_codes import GROUP_AUTHORIZATION_FAILED, NONE, OFFSET_METADATA_TOO_LARGE
from sparkmirror.offsets.checkpoints import OfGroup

_BY_NAME_MAX = 9
"""The newest version of OffsetFetch and OffsetCommit with topic names; later ones have ids only."""
_FETCH_ALL_FROM = 2
_FETCH_MANY_FROM = 8
_NO_GENERATION = _NO_EPOCH = _BROKERS_RETENTION = -1
_NO_MEMBER = ""

_IDLE = frozenset({"Empty", "Dead"})
_CONSUMERS = frozenset({"", "classic", "consumer"})


class Committed(NamedTuple):
    """A group's offset of a partition: the next one to read. The metadata is the group's own."""

    offset: int
    metadata: str


Offsets = Mapping[TopicPartition, Committed]
Refused = Mapping[TopicPartition, KafkaError]
OnCut = Callable[[Collection[TopicPartition]], None]


def _ignore(_partitions: Collection[TopicPartition]) -> None:
    pass


def offsets_at(checkpoints: OfGroup) -> Offsets:
    """The offsets that a group commits to continue at its checkpoints."""
    return {
        partition: Committed(checkpoint.downstream_offset, checkpoint.metadata or "")
        for partition, checkpoint in checkpoints.items()
    }


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its cluster lists it, with Kafka's words: `classic`, `consumer`, `share`; `Empty`, `Stable`.

    Brokers before 2.6 list no state, those before 4.0 no type (KIP-518, KIP-848).
    """

    kind: str
    state: str
    protocol: str

    @property
    def commits_offsets(self) -> bool:
        """Whether it's a consumer group: share groups commit none, others belong to their application."""
        return self.kind in _CONSUMERS and self.protocol in ("", "consumer")

    @property
    def word(self) -> str:
        """Return the group's type for display: a classic one's protocol, such as `connect`, says more."""
        if self.kind in ("", "classic") and self.protocol not in ("", "consumer"):
            return self.protocol
        return self.kind or self.protocol or "unknown"

    @property
    def is_active(self) -> bool:
        """Whether it is known to have members; brokers refuse what others commit for such a group."""
        return self.state not in ("", *_IDLE)

    @property
    def takes_offsets(self) -> bool:
        """Whether others may commit for it, as far as that is known."""
        return self.commits_offsets and not self.is_active


class GroupListing(NamedTuple):
    """Groups as the brokers that answer list them; `errors` has one for each broker that does not."""

    groups: Mapping[GroupId, ListedGroup]
    errors: Sequence[KafkaError]


class Groups:
    """Every method blocks and raises KafkaError when the request as a whole failed. One owner."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._cluster = Cluster(settings)
        self._coordinators = GroupCoordinators(self._cluster)

    @property
    def cluster(self) -> str:
        """The cluster's name for people."""
        return self._cluster.name

    def close(self) -> None:
        self._cluster.close()

    def listed(self) -> Mapping[GroupId, ListedGroup]:
        """List every group, whatever its type. Raises KafkaError when one broker does not list its own."""
        listing = self.listing()
        for error in listing.errors:
            raise error
        return listing.groups

    def listing(self) -> GroupListing:
        """List the groups of the brokers that answer: each lists those that it coordinates.

        Raises KafkaError when none answers.
        """
        listed: dict[GroupId, ListedGroup] = {}
        errors: list[KafkaError] = []
        brokers = self._cluster.brokers("list groups")
        for broker in brokers:
            try:
                listed |= self._listed_by(broker)
            except KafkaError as error:
                errors.append(error)
        if len(errors) == len(brokers):
            raise errors[0]
        return GroupListing(listed, tuple(errors))

    def _listed_by(self, broker: Address) -> Mapping[GroupId, ListedGroup]:
        response = self._cluster.request("list groups", ListGroupsRequest(), ListGroupsResponse, broker)
        if response.error_code != NONE:
            raise self._cluster.error(response.error_code, "list groups")
        return {
            GroupId(group.group_id): ListedGroup(
                (group.group_type or "").lower(), group.group_state or "", group.protocol_type
            )
            for group in response.groups
        }

    def hidden(self, groups: Collection[GroupId]) -> Mapping[GroupId, KafkaError]:
        """Return groups that this principal may not describe, so that no list has them.

        They need not exist.
        """
        rights = {group: Need.DESCRIBE_GROUP.of(group) for group in sorted(groups)}
        return {
            group: self._cluster.error(GROUP_AUTHORIZATION_FAILED, f"describe group {group}", right)
            for group, right in rights.items()
            if is_denied(self._cluster, right)
        }

    def committed(self, groups: Collection[GroupId]) -> Mapping[GroupId, Offsets | KafkaError]:
        """The committed offsets of each, or the error for it. A few requests for many groups."""
        found: dict[GroupId, Offsets | KafkaError] = {}
        for part in self.committed_parts(groups):
            found.update(part)
        return found

    def committed_parts(
        self, groups: Collection[GroupId]
    ) -> Iterator[Mapping[GroupId, Offsets | KafkaError]]:
        """Yield the result of `committed` in parts, so that no group waits for a slow coordinator."""
        return self._coordinators.ask(groups, self._fetch)

    def members(
        self, groups: Mapping[GroupId, ListedGroup]
    ) -> Mapping[GroupId, Sequence[Member] | KafkaError]:
        """The members of these consumer groups."""
        found: dict[GroupId, Sequence[Member] | KafkaError] = {}
        classic = [group for group, listed in groups.items() if listed.kind != "consumer"]
        for some, ask in ((classic, classic_members), (groups.keys() - classic, consumer_members)):
            for part in self._coordinators.ask(some, partial(ask, cluster=self._cluster)):
                found.update(part)
        return found

    def write(self, group: GroupId, offsets: Offsets, on_cut: OnCut = _ignore) -> Refused:
        """Commit offsets for a group without members; the refused partitions. Raises KafkaError.

        Offsets whose metadata is too large for the cluster are committed without it, and `on_cut` called.
        """
        refused = self._write(group, offsets)
        cut = [each for each, error in refused.items() if error.code == OFFSET_METADATA_TOO_LARGE]
        if not cut:
            return refused
        on_cut(cut)
        again = self._write(group, {each: offsets[each]._replace(metadata="") for each in cut})
        return {**{each: error for each, error in refused.items() if each not in cut}, **again}

    def _write(self, group: GroupId, offsets: Offsets) -> Refused:
        return self._changed(
            group, lambda connection, timeout_s: self._commit(connection, group, offsets, timeout_s)
        )

    def remove(
        self, group: GroupId, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError]:
        """Delete committed offsets (KIP-496); the refused partitions. Raises KafkaError.

        Brokers refuse the partitions of topics that members of the group read.
        """
        if not partitions:
            return {}
        return self._changed(
            group, lambda connection, timeout_s: self._delete(connection, group, partitions, timeout_s)
        )

    def _changed(
        self, group: GroupId, change: Callable[[Connection, float], Refused | KafkaError]
    ) -> Refused:
        def exchange(
            connection: Connection, groups: Sequence[GroupId], timeout_s: float
        ) -> Mapping[GroupId, Refused | KafkaError]:
            return {asked: change(connection, timeout_s) for asked in groups}

        refused: Refused | KafkaError = {}
        for part in self._coordinators.ask([group], exchange):
            refused = part[group]
        if isinstance(refused, KafkaError):
            raise refused
        return refused

    def _commit(
        self, connection: Connection, group: GroupId, offsets: Offsets, timeout_s: float
    ) -> Refused | KafkaError:
        request = _commit_request(group, offsets)
        response = connection.request(
            request, OffsetCommitResponse, timeout_s=timeout_s, version_max=_BY_NAME_MAX
        )
        refused = self._refused(response, group, "write the offset", Need.READ_GROUP)
        # An error of the coordinator is the same for every partition.
        return next((error for error in refused.values() if error.code in NOT_READY), refused)

    def _delete(
        self,
        connection: Connection,
        group: GroupId,
        partitions: Collection[TopicPartition],
        timeout_s: float,
    ) -> Refused | KafkaError:
        request = _delete_request(group, partitions)
        response = connection.request(request, OffsetDeleteResponse, timeout_s=timeout_s)
        if response.error_code != NONE:
            right = Need.DELETE_GROUP.of(group)
            return self._cluster.error(response.error_code, f"remove offsets of group {group}", right)
        return self._refused(response, group, "remove offsets", Need.DELETE_GROUP)

    def _refused(self, response: Any, group: GroupId, action: str, need: Need) -> Refused:
        return {
            TopicPartition(topic.name, partition.partition_index): self._cluster.error(
                partition.error_code,
                f"{action} of group {group} for {topic.name}-{partition.partition_index}",
                need.of(group),
                Need.READ_TOPIC.of(topic.name),
            )
            for topic in response.topics
            for partition in topic.partitions
            if partition.error_code != NONE
        }

    def _fetch(
        self, connection: Connection, groups: Sequence[GroupId], timeout_s: float
    ) -> Mapping[GroupId, Offsets | KafkaError]:
        key = OffsetFetchRequest.API_KEY
        version = connection.version_of(key, "OffsetFetch", _FETCH_ALL_FROM, _BY_NAME_MAX)
        found: dict[GroupId, Offsets | KafkaError] = {}
        for request in _fetch_requests(groups, finds_many=version >= _FETCH_MANY_FROM):
            response = connection.request(
                request, OffsetFetchResponse, timeout_s=timeout_s, version_max=version
            )
            for fetched in response.groups if version >= _FETCH_MANY_FROM else [response]:
                group = GroupId(getattr(fetched, "group_id", None) or request.group_id)
                found[group] = self._offsets(group, fetched)
        return found

    def _offsets(self, group: GroupId, fetched: Any) -> Offsets | KafkaError:
        """Return the offsets without partitions that have an error of their own, as Java does."""
        if fetched.error_code != NONE:
            action, right = f"read the offsets of group {group}", Need.DESCRIBE_GROUP.of(group)
            return self._cluster.error(fetched.error_code, action, right)
        return {
            TopicPartition(topic.name, partition.partition_index): Committed(
                partition.committed_offset, partition.metadata or ""
            )
            for topic in fetched.topics
            for partition in topic.partitions
            if partition.error_code == NONE and partition.committed_offset >= 0
        }


def _fetch_requests(groups: Sequence[GroupId], *, finds_many: bool) -> Iterator[Any]:
    """Make requests for all offsets of each group. Brokers before 3.0 take one group at a time (KIP-709)."""
    if finds_many:
        asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
        yield OffsetFetchRequest(groups=asked)
    else:
        for group in groups:
            yield OffsetFetchRequest(group_id=group, topics=None)


def _commit_request(group: GroupId, offsets: Offsets) -> Any:
    topics: dict[str, list[Any]] = {}
    for (topic, partition), (offset, metadata) in offsets.items():
        position = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=_NO_EPOCH,
            committed_metadata=metadata,
        )
        topics.setdefault(topic, []).append(position)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id=_NO_MEMBER,
        group_instance_id=None,
        retention_time_ms=_BROKERS_RETENTION,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )


def _delete_request(group: GroupId, partitions: Collection[TopicPartition]) -> Any:
    topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics: dict[str, list[Any]] = {}
    for topic, partition in partitions:
        asked = topic_class.OffsetDeleteRequestPartition(partition_index=partition)
        topics.setdefault(topic, []).append(asked)
    return OffsetDeleteRequest(
        group_id=group, topics=[topic_class(name=name, partitions=asked) for name, asked in topics.items()]
    )
