"""Runs a mirror under load while faults are injected, and verifies that it lost and repeated nothing."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final, NamedTuple

from tests.faults.fault import Area
from tests.faults.groups import Groups
from tests.faults.numbered import NUMBERED, numbering
from tests.faults.schedule import Injection, Round
from tests.faults.stalls import StallWatch
from tests.faults.testbed import ALIAS, PARTITIONS, PINGS, PINGS_PARTITIONS, TOPIC, DrillTestbed
from tests.faults.verdict import Verdict, verify
from tests.faults.words import WordWatch, await_well, require_stopped
from tests.support.broker_data import end_offsets
from tests.support.progress import await_caught_up
from tests.support.traffic import flowing
from tests.support.transacting import transacting

RATE: Final = 1000
_PINGS_RATE: Final = 100
_CATCH_UP_S: Final = 180.0

Log = Callable[[str], None]

# Brokers of the source are killed too, and its producer must write each record once.
_PRODUCER: Final = {
    "enable.idempotence": "true",
    "compression.type": "lz4",
    "linger.ms": "50",
    "request.timeout.ms": "5000",
}


class Finished(NamedTuple):
    """A round, and when every partition received records again after it (monotonic)."""

    name: str
    ended: float


class Drill:
    """A testbed under load. `injected` counts faults by name, `longest_stall_s` is that of any partition."""

    def __init__(self, testbed: DrillTestbed, log: Log) -> None:
        self._testbed = testbed
        self._log = log
        self._finished: list[Finished] = []
        self._words = WordWatch(testbed)
        self._groups = Groups(testbed)
        self._unwell: list[str] = []
        self.injected: Counter[str] = Counter()
        self.longest_stall_s = 0.0
        self.longest_stall_during = ""
        """The rounds that overlapped the longest stall."""

    @contextmanager
    def load(self, rate: int = RATE) -> Iterator[StallWatch]:
        """Write records during the block, which begins when all partitions receive records."""
        self._testbed.await_copying()
        source = self._testbed.source.cluster
        with (
            flowing(source, TOPIC, rate=rate, partitions=PARTITIONS, settings=_PRODUCER),
            flowing(
                source, PINGS, rate=_PINGS_RATE, partitions=PINGS_PARTITIONS, alike=True, settings=_PRODUCER
            ),
            numbering(source) if self._testbed.has_numbered else nullcontext(),
            transacting(source, TOPIC, PARTITIONS) if self._testbed.preserves else nullcontext(),
            StallWatch(self._testbed.target) as watch,
            WordWatch(self._testbed) as self._words,
        ):
            self._await_flow(watch)
            yield watch

    def inject(self, rounds: Iterable[Round], watch: StallWatch) -> None:
        """Inject one round after the other, each when all partitions receive records again."""
        for round_ in rounds:
            time.sleep(round_.pause_s)  # at any time between two stored positions
            self._log(f"{round_.number:4} {round_.name}")
            began = time.monotonic()
            took = self._inject_round(round_)
            healed = time.monotonic()
            self._await_flow(watch)
            self._groups.commit()
            self._finished.append(Finished(round_.name, time.monotonic()))
            stall_s = self._note_stall(watch, began)
            self.injected.update(injection.fault.name for injection in round_.injections)
            self._log(
                f"     healed after {healed - began:.1f} s ({took}), all flow after "
                f"{time.monotonic() - began:.1f} s; longest stall {stall_s:.1f} s"
            )

    def _note_stall(self, watch: StallWatch, since: float) -> float:
        """Return the duration of the longest stall that ended since then."""
        stall = watch.longest(since)
        if stall is None:
            return 0.0
        if stall.seconds > self.longest_stall_s:
            self.longest_stall_s = stall.seconds
            began = stall.ended_at - stall.seconds
            meanwhile = [finished.name for finished in self._finished if finished.ended > began]
            self.longest_stall_during = ", then ".join(meanwhile)
        return stall.seconds

    def _await_flow(self, watch: StallWatch) -> None:
        """Wait until every partition has received new records."""
        now = time.monotonic()
        self._testbed.await_while_running(lambda: watch.flows_since(now), watch.stalled)

    def _inject_round(self, round_: Round) -> str:
        """Inject all faults of a round, each in a thread, since one may wait until another has healed.

        Returns how long each took.
        """
        with ThreadPoolExecutor(len(round_.injections)) as pool:
            running = [pool.submit(self._inject, injection) for injection in round_.injections]
        return ", ".join(f"{taken.result():.1f}" for taken in running)

    def _inject(self, injection: Injection) -> float:
        """Returns how many seconds it took."""
        time.sleep(injection.after_s)
        if injection.fault.area is Area.BROKERS:
            # Only now may another broker be lost. Other faults may be injected while replicas catch up.
            for side in self._testbed.sides:
                side.await_in_sync()
        began = time.monotonic()
        self._testbed.were_delayed |= injection.fault.delays
        with injection.fault.inject(self._testbed, random.Random(injection.seed)):
            time.sleep(injection.hold_s)  # as long as the fault lasts
        return time.monotonic() - began

    def verify_so_far(self) -> Verdict:
        """While records flow and nothing is injected."""
        self._require(lambda: await_well(self._testbed))
        return self._with_words(verify(self._testbed, to_the_end=False))

    def finish(self) -> Verdict:
        """After the load has ended: wait for all records, stop the mirror in order, compare everything."""
        testbed = self._testbed
        testbed.await_copying()
        topics = [TOPIC, PINGS, *(NUMBERED if testbed.has_numbered else ())]
        await_caught_up(testbed.source.cluster, testbed.target.cluster, ALIAS, topics, _CATCH_UP_S)
        self._groups.commit()
        self._groups.await_newest()
        self._require(lambda: await_well(testbed, caught_up=True))
        testbed.stop_mirror()
        self._require(lambda: require_stopped(testbed))
        verdict = verify(testbed, to_the_end=True)
        return self._with_words(replace(verdict, problems=[*verdict.problems, *self._groups.problems()]))

    def _require(self, check: Callable[[], None]) -> None:
        """A wrong word fails the run, and ends it no sooner."""
        try:
            check()
        except AssertionError as error:
            self._log(str(error))
            self._unwell.append(str(error))

    def _with_words(self, verdict: Verdict) -> Verdict:
        return replace(verdict, wrong_words=[*self._words.wrong, *self._unwell])

    def figures(self, verdict: Verdict) -> str:
        """Return the figures as lines."""
        others = sum(verdict.counts.values()) - verdict.duplicates - verdict.losses
        figures = {
            "records written": f"{self.written():,}",
            "faults injected": f"{self.injected.total():,}",
            **{f"  {name}": f"{count:,}" for name, count in sorted(self.injected.items())},
            "looks at words": f"{self._words.looks:,}",
            "wrong words": f"{len(verdict.wrong_words):,}",
            "duplicates": f"{verdict.duplicates:,}",
            "losses": f"{verdict.losses:,}",
            "repeated by forgetful brokers": f"{verdict.repeated:,}",
            "removed by unclean elections": f"{sum(len(each.lost) for each in self._testbed.elections):,}",
            "other differences": f"{others:,}",
            "groups": f"{len(self._groups):,}",
            "records that groups read again": f"{self._groups.read_again:,}",
            "longest stall": f"{self.longest_stall_s:.1f} s",
        }
        lines = [f"{name:<30} {figure:>12}" for name, figure in figures.items()]
        return "\n".join(lines) + f", during {self.longest_stall_during or 'no fault'}"

    def written(self) -> int:
        """Count the records at the source."""
        return sum(end_offsets(self._testbed.source.cluster, [TOPIC]).values())
