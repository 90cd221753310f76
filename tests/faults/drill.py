"""One run: records flow, faults are dealt, and in the end every record must be there once, in order."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from tests.faults.deals import Deal, Strike
from tests.faults.faults import Area
from tests.faults.stage import ALIAS, PARTITIONS, TOPIC, Stage
from tests.faults.stalls import StallWatch
from tests.faults.verdict import Verdict, verify
from tests.support.broker_data import end_offsets
from tests.support.progress import await_caught_up
from tests.support.traffic import flowing

RATE: Final = 1000
_CATCH_UP_S: Final = 180.0

Say = Callable[[str], None]

# Brokers of the source die too: what their producer writes must be there once for there to be one truth.
_PRODUCER: Final = {
    "enable.idempotence": "true",
    "compression.type": "lz4",
    "linger.ms": "50",
    "request.timeout.ms": "5000",
}


class Dealt(NamedTuple):
    """A deal, and when all flowed again after it (monotonic)."""

    name: str
    ended: float


class Drill:
    """A stage under load. `injected` counts faults by name, `longest_stall_s` is that of any partition."""

    def __init__(self, stage: Stage, say: Say) -> None:
        self._stage = stage
        self._say = say
        self._dealt: list[Dealt] = []
        self.injected: Counter[str] = Counter()
        self.longest_stall_s = 0.0
        self.longest_stall_during = ""
        """The deals that went on meanwhile."""

    @contextmanager
    def load(self, rate: int = RATE) -> Iterator[StallWatch]:
        """Records flow, and arrive, from the beginning of the block to its end."""
        self._stage.await_copying()
        source = self._stage.source.cluster
        with (
            flowing(source, TOPIC, rate=rate, partitions=PARTITIONS, settings=_PRODUCER),
            StallWatch(self._stage.target) as watch,
        ):
            self._await_flow(watch)
            yield watch

    def deal(self, dealt: Iterable[Deal], watch: StallWatch) -> None:
        """One after the other; each when all partitions flow again."""
        for deal in dealt:
            time.sleep(deal.pause_s)  # anywhere between two positions
            self._say(f"{deal.number:4} {deal.name}")
            began = time.monotonic()
            took = self._deal_one(deal)
            healed = time.monotonic()
            self._await_flow(watch)
            self._dealt.append(Dealt(deal.name, time.monotonic()))
            stall_s = self._note_stall(watch, began)
            self.injected.update(strike.fault.name for strike in deal.strikes)
            self._say(
                f"     healed after {healed - began:.1f} s ({took}), all flow after "
                f"{time.monotonic() - began:.1f} s; longest stall {stall_s:.1f} s"
            )

    def _note_stall(self, watch: StallWatch, since: float) -> float:
        """Seconds, of the longest that ended since then."""
        stall = watch.longest(since)
        if stall is None:
            return 0.0
        if stall.seconds > self.longest_stall_s:
            self.longest_stall_s = stall.seconds
            began = stall.ended_at - stall.seconds
            meanwhile = [deal.name for deal in self._dealt if deal.ended > began]
            self.longest_stall_during = ", then ".join(meanwhile)
        return stall.seconds

    def _await_flow(self, watch: StallWatch) -> None:
        """Until every partition has got records from now on."""
        now = time.monotonic()
        self._stage.await_while_running(lambda: watch.flows_since(now), watch.standing)

    def _deal_one(self, deal: Deal) -> str:
        """Side by side: what one waits for may be what another has taken, for a while. How long each took."""
        with ThreadPoolExecutor(len(deal.strikes)) as pool:
            running = [pool.submit(self._strike, strike) for strike in deal.strikes]
        return ", ".join(f"{taken.result():.1f}" for taken in running)

    def _strike(self, strike: Strike) -> float:
        """How many seconds it took."""
        time.sleep(strike.after_s)  # what comes first is a matter of luck
        if strike.fault.area is Area.BROKERS:
            # Another one may be lost only now. While replicas of the last one catch up, others can be dealt.
            for side in self._stage.sides:
                side.await_in_sync()
        began = time.monotonic()
        with strike.fault.deal(self._stage, random.Random(strike.seed)):
            time.sleep(strike.hold_s)  # what the fault is
        return time.monotonic() - began

    def verify_so_far(self) -> Verdict:
        return verify(self._stage, to_the_end=False)

    def finish(self) -> Verdict:
        """When the load has ended: all of it arrives, the mirror stops in order, everything is compared."""
        stage = self._stage
        stage.await_copying()
        await_caught_up(stage.source.cluster, stage.target.cluster, ALIAS, [TOPIC], _CATCH_UP_S)
        stage.stop_mirror()
        return verify(stage, to_the_end=True)

    def figures(self, verdict: Verdict) -> str:
        """A line for each."""
        others = sum(verdict.counts.values()) - verdict.duplicates - verdict.losses
        figures = {
            "records written": f"{self.written():,}",
            "faults injected": f"{self.injected.total():,}",
            **{f"  {name}": f"{count:,}" for name, count in sorted(self.injected.items())},
            "duplicates": f"{verdict.duplicates:,}",
            "losses": f"{verdict.losses:,}",
            "other differences": f"{others:,}",
            "longest stall": f"{self.longest_stall_s:.1f} s",
        }
        lines = [f"{name:<30} {figure:>12}" for name, figure in figures.items()]
        return "\n".join(lines) + f", during {self.longest_stall_during or 'no fault'}"

    def written(self) -> int:
        """Records, at the source."""
        return sum(end_offsets(self._stage.source.cluster, [TOPIC]).values())
