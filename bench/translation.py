"""Measures how many records groups read again, and how many they miss, when they fail over.

Three topics: a plain one, one with gaps that the broker's cleaner left, one in transactions. Groups commit
offsets taken at random on the source; what the mirror's checkpoints say then is held against the records
themselves, read from both sides at the end: what comes n-th on the source comes n-th on the target.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product

from bench.bed import Bed
from bench.errors import BenchError
from bench.groups import Commits, last_checkpoints
from bench.results import Moment, TranslationRun
from bench.side_process import SideProcess
from bench.sides import TARGET_ALIAS, Mirroring, Side
from bench.throughput import Job, command
from bench.translation_data import PARTITIONS, PLAIN, TOPICS, Flow
from bench.translation_judge import EVERY_PARTITION, Look, Offsets, Placed, judge
from bench.wire import Wire
from bench.workloads import TRANSLATION

GROUPS = 50
"""At each moment."""
LAG_MAX = 1000
"""The most records by which a group that reads along may be behind the end."""
SETTINGS = {
    "groups": "bench-tr-.*",
    "emit.checkpoints.interval.seconds": "1",
    f"{TARGET_ALIAS}.offset.flush.interval.ms": "1000",
}
_ALONG_EVERY_S = 0.5
_FLOWS_FIRST_S = 8.0
_SETTLED_S = 5.0
_STILL_S = 3.0
_TIMEOUT_S = 90.0
_POLL_S = 0.1
_NOTHING: Offsets = dict.fromkeys(EVERY_PARTITION, 0)


def measure(bed: Bed, side: Side) -> list[TranslationRun]:
    """Every moment of one side, after `write`. Leaves nothing but the data."""
    mirroring = bed.mirroring(f"{TRANSLATION}{side.value}", ",".join(TOPICS))
    job = Job(TRANSLATION, 1, mirroring.source_alias, mirroring.topics, 0, SETTINGS)
    try:
        with Commits(bed.source.bootstrap) as commits:
            commits.prepare("bench-tr-first", PLAIN)
            looks = _Failovers(bed, mirroring, command(bed, side, mirroring, job), commits).all()
        judged = judge(bed, mirroring)
        return [judged.of(side, moment, topic, look) for moment, look in looks.items() for topic in TOPICS]
    finally:
        bed.source.topics.delete_all_but(TOPICS)
        bed.target.topics.delete_all_but(())


class _Failovers:
    """One mirror in two lives, and the groups whose offsets it translates."""

    def __init__(self, bed: Bed, mirroring: Mirroring, started: list[str], commits: Commits) -> None:
        self._bed = bed
        self._mirroring = mirroring
        self._command = started
        self._commits = commits
        self._dice = random.Random(1)

    def all(self) -> Mapping[Moment, Look]:
        for moment in Moment:  # every group is known from the start, whenever it moves
            self._commit(dict.fromkeys(_groups(moment), _NOTHING))
        with Flow(self._bed.source.bootstrap) as flow:
            with self._mirror(1) as mirror:
                self._await_still(mirror)
                looks = {Moment.QUIET: self._parked(Moment.QUIET, _NOTHING)}
                flowing_from = self._source_ends()
                flow.start()
                looks |= self._while_data_flows(flowing_from)
                mirror.stop()
            with self._mirror(2) as mirror:
                self._await_flow(mirror)
                looks[Moment.RESTARTED] = self._parked(Moment.RESTARTED, flowing_from)
                flow.stop()
                self._await_still(mirror)
                mirror.stop()
        return looks

    def _while_data_flows(self, flowing_from: Offsets) -> Mapping[Moment, Look]:
        lags = {group: self._dice.randrange(LAG_MAX) for group in _groups(Moment.ALONG)}
        self._read_along(lags, _FLOWS_FIRST_S)
        parked = self._park(Moment.FLOWING, flowing_from)
        along = self._read_along(lags, _SETTLED_S)
        at_s = time.time()
        return {
            Moment.FLOWING: self._look(parked, at_s),
            Moment.ALONG: self._look(along, at_s),
            Moment.NAMED: self._look(along, at_s, as_named=True),
        }

    def _parked(self, moment: Moment, low: Offsets) -> Look:
        parked = self._park(moment, low)
        time.sleep(_SETTLED_S)
        return self._look(parked, time.time())

    def _park(self, moment: Moment, low: Offsets) -> Mapping[str, Offsets]:
        """The moment's groups commit offsets between those and the present ends, and no more."""
        ends = self._source_ends()
        positions = {
            group: {partition: self._dice.randint(low[partition], end) for partition, end in ends.items()}
            for group in _groups(moment)
        }
        self._commit(positions)
        return positions

    def _read_along(self, lags: Mapping[str, int], seconds: float) -> Mapping[str, Offsets]:
        """Groups continue, each so far behind the ends; what they have committed last."""
        until = time.monotonic() + seconds
        while True:
            ends = self._source_ends()
            positions = {
                group: {partition: end - lag for partition, end in ends.items()}
                for group, lag in lags.items()
            }
            self._commit(positions)
            if time.monotonic() > until:
                return positions
            time.sleep(_ALONG_EVERY_S)

    def _look(self, committed: Mapping[str, Offsets], at_s: float, *, as_named: bool = False) -> Look:
        """`as_named`: as if the groups had committed what the checkpoints name."""
        checkpoints = last_checkpoints(self._bed.target.bootstrap, self._mirroring.source_alias, at_s)
        placed = []
        for group, (topic, number) in product(committed, EVERY_PARTITION):
            at = checkpoints.get((group, self._mirroring.target_topic(topic), number))
            upstream = at.upstream if at and as_named else committed[group][topic, number]
            placed.append(Placed(group, (topic, number), upstream, at.downstream if at else None))
        return Look(at_s, placed)

    def _commit(self, positions: Mapping[str, Offsets]) -> None:
        self._commits.commit(
            {
                group: {topic: {n: offsets[topic, n] for n in range(PARTITIONS)} for topic in TOPICS}
                for group, offsets in positions.items()
            }
        )

    @contextmanager
    def _mirror(self, life: int) -> Iterator[SideProcess]:
        log = self._bed.folder / f"{self._mirroring.source_alias}-{life}.log"
        with SideProcess.start(self._command, log) as process:
            yield process

    def _await_flow(self, mirror: SideProcess) -> None:
        before = self._copied()
        self._await(mirror, lambda: self._copied() > before)
        time.sleep(_SETTLED_S)

    def _await_still(self, mirror: SideProcess) -> None:
        """Until all topics have something, and nothing came for a while."""
        still_since, last = time.monotonic(), -1

        def is_still() -> bool:
            nonlocal still_since, last
            if (copied := self._copied()) != last:
                still_since, last = time.monotonic(), copied
            return copied > 0 and time.monotonic() - still_since > _STILL_S

        self._await(mirror, is_still)

    def _await(self, mirror: SideProcess, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not condition():
            if mirror.has_ended() or time.monotonic() > deadline:
                raise BenchError(f"nothing to see of the mirror: {mirror.log_tail()}")
            time.sleep(_POLL_S)

    def _copied(self) -> int:
        """The sum of the target's end offsets; 0 until all topics are there."""
        names = [self._mirroring.target_topic(topic) for topic in TOPICS]
        try:
            ends = [self._bed.target.topics.end_offsets(name, PARTITIONS) for name in names]
        except BenchError:
            return 0
        return sum(ends) if all(ends) else 0

    def _source_ends(self) -> Offsets:
        wire = Wire.connect(self._bed.source.bootstrap)
        try:
            return {
                (topic, number): end
                for topic in TOPICS
                for number, end in enumerate(wire.end_offsets(topic, PARTITIONS))
            }
        finally:
            wire.close()


def _groups(moment: Moment) -> list[str]:
    return [f"bench-tr-{moment.name.lower()}-{number}" for number in range(GROUPS)]
