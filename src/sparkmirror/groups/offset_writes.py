"""Commits offsets of groups on a flow's target, and tells what the target refuses."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, GroupId, TopicPartition
from sparkmirror.domain.quantities import counted, some_of
from sparkmirror.kafka.groups.consumer_groups import Groups, offsets_at
from sparkmirror.kafka.wire.error_codes import ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID
from sparkmirror.offsets.checkpoints import OfGroup
from sparkmirror.periodic.flow_log import FlowLog

_HAS_MEMBERS: Final = frozenset({ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS})


@dataclass(frozen=True, slots=True)
class RefusedOffsets:
    """The partitions whose offsets the target did not take; `error` is None where it has members."""

    partitions: Collection[TopicPartition]
    text: str
    error: KafkaError | None


class OffsetWrites:
    """Commits offsets of groups, and remembers what was refused. Not thread-safe."""

    def __init__(self, log: FlowLog, target: Alias) -> None:
        self._log = log
        self._target = target
        self._refused: set[GroupId] = set()
        self._cut: set[GroupId] = set()

    def write(self, groups: Groups, group: GroupId, checkpoints: OfGroup) -> RefusedOffsets | None:
        """Commit the offsets; what the target refuses keeps nothing else back, and is returned."""
        try:
            refused = groups.write(group, offsets_at(checkpoints), partial(self._say_cut, group))
        except KafkaError as error:
            refused = dict.fromkeys(checkpoints, error)
        if not refused:
            self._say_that_it_works(group)
            return None
        whole = _sum_up(refused)
        if any(each.code in _HAS_MEMBERS for each in refused.values()):
            return RefusedOffsets(refused.keys(), f"{whole}; it has got members there", None)
        self._refused.add(group)
        return RefusedOffsets(refused.keys(), str(whole), whole)

    def _say_that_it_works(self, group: GroupId) -> None:
        if group in self._refused:
            self._refused.remove(group)
            self._log.info("group %s: %s takes its offsets again", group, self._target)

    def _say_cut(self, group: GroupId, partitions: Collection[TopicPartition]) -> None:
        """Log once for each group."""
        if group not in self._cut:
            self._cut.add(group)
            self._log.warning(
                "group %s: %s refuses the metadata of its offsets for %s: they are written without it. "
                "offset.metadata.max.bytes of the brokers is the limit",
                group,
                self._target,
                some_of(sorted(map(str, partitions))),
            )


def _sum_up(refused: Mapping[TopicPartition, KafkaError]) -> KafkaError:
    """The first error, with the number of partitions that were refused beside it."""
    first, *others = refused.values()
    more = f"; and for {counted(len(others), 'more partition')}" if others else ""
    return KafkaError(f"{first}{more}", first.code)
