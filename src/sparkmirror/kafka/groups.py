"""Consumer groups of one cluster: which there are, what they have committed, and offsets for idle ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as LibraryPartition

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.clients import LibraryAdmin
from sparkmirror.kafka.error_codes import NONE, error_for

_GROUPS_PER_REQUEST = 500
"""An answer with thousands of groups of many partitions each is large, and its broker busy for a while."""

_IDLE = frozenset({"Empty", "Dead"})
_CONSUMERS = frozenset({"", "classic", "consumer"})


class Committed(NamedTuple):
    """A group's offset of a partition: the next one to read. The metadata is the group's own."""

    offset: int
    metadata: str


Offsets = Mapping[TopicPartition, Committed]


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its cluster lists it, with Kafka's words: `classic`, `consumer`, `share`; `Empty`, `Stable`.

    Brokers before 2.6 say no state, those before 4.0 no type (KIP-518, KIP-848).
    """

    kind: str
    state: str
    protocol: str

    @property
    def commits_offsets(self) -> bool:
        """Whether it's a consumer group: share groups commit none, others are their application's affair."""
        return self.kind in _CONSUMERS and self.protocol in ("", "consumer")

    @property
    def is_active(self) -> bool:
        """Whether it is known to have members; brokers refuse what others commit for such a group."""
        return self.state not in ("", *_IDLE)


class Groups:
    """Every method blocks and raises KafkaError when the request as a whole failed. One owner."""

    def __init__(self, settings: ConnectionSettings, cluster: str) -> None:
        """`cluster` names it in errors: an alias."""
        self._cluster = cluster
        self._client = LibraryAdmin(settings, cluster)

    def close(self) -> None:
        self._client.close()

    def listed(self) -> Mapping[GroupId, ListedGroup]:
        """Every group, whatever its type."""
        return {
            GroupId(group["group_id"]): ListedGroup(
                str(group.get("group_type") or "").lower(),
                str(group.get("group_state") or ""),
                str(group["protocol_type"]),
            )
            for group in self._client.call("list groups", "list_groups")
        }

    def committed(self, groups: Collection[GroupId]) -> Mapping[GroupId, Offsets | KafkaError]:
        """What each has committed, or why that can't be told. One request for many groups."""
        found: dict[GroupId, Offsets | KafkaError] = {}
        for some in _chunks(groups):
            try:
                found.update(self._committed(some))
            except DisconnectedError:
                raise
            except KafkaError:
                found.update(self._one_by_one(some))
        return found

    def write(self, group: GroupId, offsets: Offsets) -> Mapping[TopicPartition, KafkaError]:
        """Commit offsets for a group without members. What was refused, by partition."""
        wanted = {
            LibraryPartition(*partition): OffsetAndMetadata(offset, metadata, -1)
            for partition, (offset, metadata) in offsets.items()
        }
        action = f"write offsets of group {group}"
        answers = self._client.call(action, "alter_group_offsets", group, wanted)
        errors = {TopicPartition(*partition): answer.errno for partition, answer in answers.items()}
        return {
            partition: error_for(code, f"{action} for {partition} on {self._cluster}")
            for partition, code in errors.items()
            if code != NONE
        }

    def _committed(self, groups: list[GroupId]) -> Mapping[GroupId, Offsets]:
        answers = self._client.call("read offsets of groups", "list_group_offsets", groups)
        return {
            GroupId(group): {
                TopicPartition(*partition): Committed(committed.offset, committed.metadata or "")
                for partition, committed in offsets.items()
                if committed.offset >= 0
            }
            for group, offsets in answers.items()
        }

    def _one_by_one(self, groups: list[GroupId]) -> Mapping[GroupId, Offsets | KafkaError]:
        found: dict[GroupId, Offsets | KafkaError] = {}
        for group in groups:
            try:
                found.update(self._committed([group]))
            except DisconnectedError:
                raise
            except KafkaError as error:
                found[group] = error
        return found


def _chunks(groups: Collection[GroupId]) -> list[list[GroupId]]:
    left = iter(groups)
    chunks = []
    while chunk := list(islice(left, _GROUPS_PER_REQUEST)):
        chunks.append(chunk)
    return chunks
