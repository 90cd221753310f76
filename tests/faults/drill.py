"""One run: records flow, faults are dealt, and in the end every record must be there once, in order."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.faults.deals import Deal
from tests.faults.faults import Area
from tests.faults.stage import ALIAS, PARTITIONS, TOPIC, Stage
from tests.faults.stalls import StallWatch
from tests.faults.verdict import Verdict, verify
from tests.flowing import flowing
from tests.system.broker_data import end_offsets
from tests.system.progress import await_caught_up

RATE: Final = 1000
_CATCH_UP_S: Final = 180.0

Say = Callable[[str], None]

# Brokers of the source die too: what their producer writes must be there once for there to be one truth.
_PRODUCER: Final = {
    "enable.idempotence": "true",
    "compression.type": "lz4",
    "linger.ms": "20",
    "request.timeout.ms": "5000",
}


class Drill:
    """A stage under load. `injected` counts faults by name, `longest_stall_s` is that of any partition."""

    def __init__(self, stage: Stage, say: Say) -> None:
        self._stage = stage
        self._say = say
        self.injected: Counter[str] = Counter()
        self.longest_stall_s = 0.0

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
            self._deal_one(deal)
            healed = time.monotonic()
            self._await_flow(watch)
            stall_s = watch.longest(began)
            self.longest_stall_s = max(self.longest_stall_s, stall_s)
            self.injected.update(fault.name for fault in deal.faults)
            self._say(f"     healed after {healed - began:.1f} s; longest stall {stall_s:.1f} s")

    def _await_flow(self, watch: StallWatch) -> None:
        """Until every partition has got records from now on."""
        now = time.monotonic()
        self._stage.await_while_running(lambda: watch.flows_since(now), watch.standing)

    def _deal_one(self, deal: Deal) -> None:
        # Spark's own come first and heal last: they wait for tasks, which wait for brokers and the network.
        faults = sorted(deal.faults, key=lambda fault: fault.area is not Area.SPARK)
        with ExitStack() as stack:
            for fault in faults:
                dice = random.Random(f"{deal.seed}.{fault.name}")
                stack.enter_context(fault.deal(self._stage, dice))
            time.sleep(deal.hold_s)  # what the fault is

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
            "duplicates": f"{verdict.duplicates:,}",
            "losses": f"{verdict.losses:,}",
            "other differences": f"{others:,}",
            "longest stall": f"{self.longest_stall_s:.1f} s",
        }
        return "\n".join(f"{name:<20} {figure:>12}" for name, figure in figures.items())

    def written(self) -> int:
        """Records, at the source."""
        return sum(end_offsets(self._stage.source.cluster, [TOPIC]).values())
