"""Checkpoints of thousands of groups: CPU of an interval in which none moves, and of one in which all do."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace

from bench.bed import Bed
from bench.dataset import fill
from bench.errors import BenchError
from bench.groups import Commits, Offsets, checkpoints_topic
from bench.plan import ManyGroups
from bench.results import ManyGroupsRun
from bench.side_process import SideProcess
from bench.sides import Side
from bench.throughput import Job, command
from bench.workloads import BY_NAME, GROUPS

PARTITIONS = 20
INTERVAL_S = 15
SETTINGS = {"groups": "bench-mg-.*", "emit.checkpoints.interval.seconds": str(INTERVAL_S)}
FIRST_S = 60.0
_TOPIC = "bench-mg"
_RECORDS = 20_000
_FIRST, _THEN = 100, 600
_BATCH_BYTES = 16 << 10
_TIMEOUT_S = 120.0
_POLL_S = 0.1


def measure(bed: Bed, side: Side, planned: ManyGroups) -> ManyGroupsRun:
    """All groups have an offset in every partition, and a checkpoint for it, before anything counts.

    A side that does not get so far within FIRST_S is measured while it tries.
    """
    alias = f"{GROUPS}{side.value}"
    mirroring = bed.mirroring(alias, _TOPIC)
    started = command(bed, side, mirroring, Job(GROUPS, 1, alias, _TOPIC, 0, SETTINGS))
    bed.source.topics.create(_TOPIC, PARTITIONS)
    try:
        fill(bed.source, _TOPIC, BY_NAME["100b-lz4"].with_records(_RECORDS), _BATCH_BYTES, PARTITIONS)
        with Commits(bed.source.bootstrap) as commits:
            commits.prepare("bench-mg-0", _TOPIC)
            commits.commit(_all_at(_FIRST, planned.groups))
            with SideProcess.start(started, bed.folder / f"{alias}.log") as mirror:
                written = _Written(bed, alias, mirror)
                run = _observe(side, planned, written, commits)
                mirror.stop()
    finally:
        bed.clean()
    return run


def _observe(side: Side, planned: ManyGroups, written: "_Written", commits: Commits) -> ManyGroupsRun:
    checkpoints, mirror = planned.groups * PARTITIONS, written.mirror
    written.await_count(1, _TIMEOUT_S)
    first = _Interval(mirror)
    count = written.await_count(checkpoints, FIRST_S, or_less=True)
    run = ManyGroupsRun(
        side=side,
        groups=planned.groups,
        partitions=PARTITIONS,
        interval_s=INTERVAL_S,
        written_at_first=count,
        moved_cpu_s=first.cpu_s(),
        peak_pss_mb=mirror.peak_pss_mb,
    )
    if count < checkpoints:
        return run
    quiet_cpu_s = _Interval(mirror).cpu_s()
    moved = _Interval(mirror)
    commits.commit(_all_at(_THEN, planned.groups))
    written.await_count(checkpoints + 1, _TIMEOUT_S)
    began_at = time.monotonic()
    written.await_count(2 * checkpoints, _TIMEOUT_S)
    took_s = time.monotonic() - began_at
    return replace(
        run,
        quiet_cpu_s=quiet_cpu_s,
        moved_cpu_s=moved.cpu_s(),
        took_s=took_s,
        peak_pss_mb=mirror.peak_pss_mb,
    )


class _Written:
    """Counts the checkpoints that a mirror has written: each is news, and none comes twice."""

    def __init__(self, bed: Bed, alias: str, mirror: SideProcess) -> None:
        self.mirror = mirror
        self._topics = bed.target.topics
        self._topic = checkpoints_topic(alias)

    def await_count(self, count: int, within_s: float, *, or_less: bool = False) -> int:
        deadline = time.monotonic() + within_s
        while (now := self._count()) < count:
            is_late = time.monotonic() > deadline
            if is_late and or_less:
                break
            if is_late or self.mirror.has_ended():
                raise BenchError(f"{now} of {count} checkpoints: {self.mirror.log_tail()}")
            time.sleep(_POLL_S)
        return now

    def _count(self) -> int:
        try:
            return self._topics.end_offsets(self._topic, 1)
        except BenchError:
            return 0  # the topic is not there yet


class _Interval:
    """CPU of a mirror from now on, by whole intervals."""

    def __init__(self, mirror: SideProcess) -> None:
        mirror.observe()
        self._mirror = mirror
        self._began, self._before_s = time.monotonic(), mirror.tree.cpu_s()

    def cpu_s(self) -> float:
        """Return the mean of the intervals that have begun; waits until the last one ends."""
        intervals = math.ceil((time.monotonic() - self._began) / INTERVAL_S)
        time.sleep(max(0.0, self._began + intervals * INTERVAL_S - time.monotonic()))
        self._mirror.observe()
        return (self._mirror.tree.cpu_s() - self._before_s) / intervals


def _all_at(offset: int, groups: int) -> Mapping[str, Offsets]:
    everywhere = {_TOPIC: dict.fromkeys(range(PARTITIONS), offset)}
    return {f"bench-mg-{number}": everywhere for number in range(groups)}
