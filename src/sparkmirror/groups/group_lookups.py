"""Chooses whose offsets are looked up in the records of both logs, and in which order."""

from collections.abc import Collection, Iterator, Mapping

from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.groups.offset_resolver import Budget, OffsetResolver, Wanted
from sparkmirror.kafka.groups.consumer_groups import Offsets
from sparkmirror.metrics.checkpoint_meter import CheckpointMeter
from sparkmirror.offsets.checkpoints import CheckpointBook
from sparkmirror.offsets.resolution import ResolveOffsets
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings, counterpart

_TIME_LIMIT_S = 5.0
"""The time for lookups in an interval; at most a quarter of the interval."""

Position = tuple[GroupId, TopicPartition]
"""A group's, by the source's partition."""


class GroupLookups:
    """Looks up first what has waited longest, so that no group that moves on keeps others waiting."""

    def __init__(
        self,
        settings: MirrorCheckpointSettings,
        resolver: OffsetResolver,
        meter: CheckpointMeter,
        log: FlowLog,
    ) -> None:
        self._settings = settings
        self._resolver = resolver
        self._meter = meter
        self._log = log
        time_limit_s = min(_TIME_LIMIT_S, settings.emit_checkpoints_interval_s / 4)
        self._budget = Budget(settings.resolve_bytes_max, time_limit_s)
        self._seen: dict[Position, int] = {}
        self._moved: set[Position] = set()
        self._turns: dict[Position, int] = {}
        """The last round in which each was looked up."""
        self._round = 0
        self._is_behind = False

    def keep_only(self, groups: Collection[GroupId]) -> None:
        followed = set(groups)
        self._seen = {position: offset for position, offset in self._seen.items() if position[0] in followed}
        self._turns = {position: last for position, last in self._turns.items() if position in self._seen}
        self._moved &= self._seen.keys()

    def note(self, offsets_of: Mapping[GroupId, Offsets], book: CheckpointBook) -> None:
        """Take what groups have committed, before the book takes their next checkpoints."""
        for group, offsets in offsets_of.items():
            checkpoints = book.of_group(group)
            for partition, (offset, _) in offsets.items():
                position = (group, partition)
                last = self._seen.get(position)
                if last is None:
                    checkpoint = checkpoints.get(counterpart(self._settings, partition))
                    last = offset if checkpoint is None else checkpoint.upstream_offset
                if offset != last:
                    self._moved.add(position)
                self._seen[position] = offset

    def run(
        self, found: Mapping[GroupId, Offsets], histories: Mapping[TopicPartition, SyncHistory]
    ) -> Collection[GroupId]:
        """Let the histories learn, within an interval's budget. The groups that may be better known now."""
        wanted = dict(self._wanted(found, histories))
        read_before = self._resolver.bytes_read
        self._round += 1
        done = self._resolver.resolve((wanted[position] for position in self._in_turn(wanted)), self._budget)
        self._turns |= {position: self._round for position, it in wanted.items() if it in done.looked_up}
        self._moved -= {position for position, it in wanted.items() if it in done.settled}
        waiting = sum(it in done.left_over for it in wanted.values())
        self._report(waiting, self._resolver.bytes_read - read_before)
        return {group for (group, _), it in wanted.items() if it in done.looked_up or it in done.settled}

    def _in_turn(self, wanted: Mapping[Position, Wanted]) -> list[Position]:
        """Order those of one partition by offset: each look-up continues where the one before has ended."""
        return sorted(
            wanted,
            key=lambda position: (
                self._turns.get(position, 0),
                wanted[position].source,
                wanted[position].upstream,
            ),
        )

    def _wanted(
        self, found: Mapping[GroupId, Offsets], histories: Mapping[TopicPartition, SyncHistory]
    ) -> Iterator[tuple[Position, Wanted]]:
        settings = self._settings
        is_all = settings.resolve is ResolveOffsets.ALL
        for position in list(self._seen if is_all else self._moved):
            group, partition = position
            committed, history = found.get(group, {}).get(partition), histories.get(partition)
            if committed is None:
                continue
            if history is None or not settings.topic_filter.should_replicate(partition.topic):
                self._moved.discard(position)
            elif history.gap_at(committed.offset) is not None:
                there = counterpart(settings, partition)
                yield position, Wanted(partition, committed.offset, there, history)
            elif not _is_ahead(history, committed.offset):
                self._moved.discard(position)

    def _report(self, waiting: int, bytes_read: int) -> None:
        self._meter.looked_up(waiting, bytes_read)
        if waiting and not self._is_behind:
            self._log.warning(
                "%d offsets of groups stay approximate until a later interval: the look-ups of this one "
                "ended after %d bytes (limits: translation.resolve.bytes.max=%d and %.1f s)",
                waiting,
                bytes_read,
                *self._budget,
            )
        elif self._is_behind and not waiting:
            self._log.info("no offset of a group waits any more to be looked up")
        self._is_behind = bool(waiting)


def _is_ahead(history: SyncHistory, upstream: int) -> bool:
    """Whether no sync is as new, so that a later one may leave the offset in a gap."""
    place = history.place(upstream)
    return place is not None and place.behind_max is None
