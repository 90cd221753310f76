"""Follows the mirror's own progress records and shows them until a condition holds."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from sparkmirror.cli.commands.demo.dashboard import Dashboard
from sparkmirror.cli.commands.demo.throughput import Snapshot, Throughput
from sparkmirror.domain.errors import RetriableError, SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.storage.progress import PartitionProgress, PartitionState

_TICK_S: Final = 0.5

Progress = Mapping[tuple[ConnectorName, TopicPartition], PartitionProgress]
Poll = Callable[[float], Progress]
"""`ProgressReader.poll`: waits up to so many seconds for new records, returns all known progress."""


class Watch:
    """Shows the progress of some topics. `check` raises when waiting has become useless."""

    def __init__(
        self,
        poll: Poll,
        topics: Collection[str],
        dashboard: Dashboard,
        check: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._poll = poll
        self._topics = topics
        self._dashboard = dashboard
        self._check = check
        self._clock = clock
        self._known: Progress = {}
        self._throughput = Throughput()

    def until(self, done: Callable[[Snapshot], bool], caption: str, timeout_s: float) -> bool:
        """Show progress until `done` returns true; False after `timeout_s`."""
        started = self._clock()
        while True:
            self._check()
            snapshot = self._snapshot()
            elapsed_s = self._clock() - started
            self._show(snapshot, f"{caption}: {elapsed_s:.0f} of {timeout_s:.0f} s")
            if done(snapshot):
                return True
            if elapsed_s >= timeout_s:
                return False

    def _show(self, snapshot: Snapshot, caption: str) -> None:
        now = self._clock()
        self._throughput.observe(snapshot, now)
        self._dashboard.show(self._throughput.topics(), self._throughput.total(), caption, now)

    def _snapshot(self) -> Snapshot:
        progress = self._news().values()
        snapshot = {p.source: p for p in progress if p.source.topic in self._topics}
        for partition, its in snapshot.items():
            if its.state is PartitionState.FAILED:
                raise SparkmirrorError(f"{partition} is not mirrored: {its.error}")
        return snapshot

    def _news(self) -> Progress:
        """The last known progress while the topic has no leader: it may have just been created."""
        try:
            self._known = self._poll(_TICK_S)
        except RetriableError:
            time.sleep(_TICK_S)
        return self._known


def has_begun(snapshot: Snapshot) -> bool:
    return any(progress.records for progress in snapshot.values())


def has_reached(snapshot: Snapshot, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether every partition is mirrored up to its end offset and reports no lag."""
    return all(
        partition in snapshot and _is_at(snapshot[partition], end)
        for partition, end in ends.items()
        if end > 0
    )


def _is_at(progress: PartitionProgress, end: int) -> bool:
    return progress.lag == 0 and progress.position is not None and progress.position + 1 >= end
