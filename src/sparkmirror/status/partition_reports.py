"""Makes the reports of a mirror's partitions from what Kafka alone tells of them.

This mirror's tasks report themselves; positions and the source's ends then say what is newer. Java's report
nothing: neither bytes nor latencies of them are known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Motion
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.storage.progress import PartitionProgress

_STEPS: Final = 2
DELETED: Final = (
    "its topic was deleted on the source: nothing to do, the mirror leaves it out at its next refresh"
)


class _Step(NamedTuple):
    """Says when the position was found to have moved, by any clock, and what the lag was then."""

    at: float
    following: int
    lag: int


class PartitionReports:
    """Counts records from where a partition was first looked at. One owner."""

    def __init__(self) -> None:
        self._first: dict[TopicPartition, int] = {}
        self._steps: dict[TopicPartition, tuple[_Step, ...]] = {}

    def motion(self, partition: TopicPartition) -> Motion | None:
        """Compute it from one step of the position to the next, since between them the lag only grows."""
        steps = self._steps.get(partition, ())
        if len(steps) < _STEPS:
            return None
        before, last = steps
        return Motion(last.at - before.at, before.lag - last.lag)

    def of(self, look: FlowLook) -> list[PartitionProgress]:
        """Return a report of each partition that is mirrored."""
        own = look.reported
        return [
            self._counted(it) if (report := own.get(it.source)) is None else _newer(report, it, look.ends)
            for it in look.mirrored
        ]

    def _counted(self, found: PartitionProgress) -> PartitionProgress:
        self._note_step(found)
        following = _following(found) or 0
        first = self._first.setdefault(found.source, following)
        if following < first:  # the topic was created again
            first = self._first[found.source] = following
        return replace(found, records=following - first)

    def _note_step(self, found: PartitionProgress) -> None:
        steps, following = self._steps.get(found.source, ()), _following(found)
        if following is None or found.lag is None or (steps and steps[-1].following == following):
            return
        self._steps[found.source] = (*steps, _Step(found.updated_at, following, found.lag))[-_STEPS:]


def _newer(
    report: PartitionProgress, found: PartitionProgress, ends: Mapping[TopicPartition, int]
) -> PartitionProgress:
    """The task's report with the lag as of now, since a task that died reports nothing."""
    known = [at for at in (_following(report), _following(found)) if at is not None]
    following, end, lag = max(known, default=None), ends.get(found.source), found.lag
    if lag and following is not None and end is not None:
        lag = max(0, end - following)
    return replace(
        report,
        position=None if following is None else following - 1,
        lag=lag,
        error=report.error or (found.error if lag is None else None),
    )


def _following(report: PartitionProgress) -> int | None:
    """The next offset to copy."""
    return None if report.position is None else report.position + 1


class GonePartitions:
    """Remembers partitions whose topics were deleted on the source while they were watched. One owner."""

    def __init__(self, kept_s: float) -> None:
        """`kept_s` is how often the mirror refreshes its topics: then it has left them out, too."""
        self._kept_s = kept_s
        self._known: dict[TopicPartition, tuple[float, PartitionProgress]] = {}

    def of(self, found: Sequence[PartitionProgress], now: float) -> list[PartitionProgress]:
        """Return those that were found before, and are not now; `now` is any clock's seconds."""
        known = self._known | {each.source: (now, each) for each in found}
        self._known = {source: it for source, it in known.items() if now - it[0] < self._kept_s}
        gone = [report for at, report in self._known.values() if at < now]
        return [replace(report, lag=None, error=DELETED) for report in gone]
