"""The crash drill: what SIGKILL costs a mirror under load, in records that come twice and in seconds.

Numbered records flow all the time. After each kill the side is started again at once, as a supervisor would;
a killed worker Spark replaces itself. In the end every record on the target is read and counted. The whole
drill ends within DRILL_S or fails, saying what it was waiting for.

Records that a side copies once more count as data that flows: what Java MM2 does first after a crash
is to repeat what it copied since its last offset flush (`offset.flush.interval.ms`, 60 s by default).
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.bed import Bed
from bench.errors import BenchError
from bench.results import DrillRun, Victim
from bench.side_process import SideProcess
from bench.sides import Side
from bench.throughput import Job, command
from bench.wire import Wire
from bench.workloads import DRILL, PARTITIONS

RECORDS_PER_S = 10_000
_TOPIC = "bench-drill"
_PAUSE_S = (4.0, 6.0)
_POLL_S = 0.02
_FLOWS_WITHIN_S = 0.5
_WATCHED_S = 3.0
_SETTLED_S = 3.0
DRILL_S = 120.0
_LAST_KILL_S = 65.0
"""A side that needs longer to start again is killed less often."""


def measure(bed: Bed, side: Side, victim: Victim, kills: int) -> DrillRun:
    """Kill up to so many times, after pauses that are the same for every side."""
    alias = f"{DRILL}{side.value}{victim.name.lower()}".replace("-", "")
    mirroring = bed.mirroring(alias, _TOPIC)
    bed.source.topics.create(_TOPIC, PARTITIONS)
    bed.target.topics.create(mirroring.target_topic(_TOPIC), PARTITIONS)
    started = command(bed, side, mirroring, Job(DRILL, 1, alias, _TOPIC, 0))
    dice, began = random.Random(kills), time.monotonic()
    deadline = began + DRILL_S
    try:
        with _Supervised(bed, started, alias) as mirror, _Load(bed.source.bootstrap) as load:
            watch = _Watch(bed.target.bootstrap, mirroring.target_topic(_TOPIC), deadline)
            watch.until_all_flow(0.0)
            stalls_s: list[float] = []
            while len(stalls_s) < kills and (not stalls_s or time.monotonic() < began + _LAST_KILL_S):
                time.sleep(dice.uniform(*_PAUSE_S))
                mirror.kill(victim)
                stalls_s.append(watch.until_all_flow(_WATCHED_S))
            written = load.stop()
            watch.until_settled(written)
            mirror.stop()
        counts = _counted(bed.target.bootstrap, mirroring.target_topic(_TOPIC), deadline)
    finally:
        bed.clean()
    return DrillRun(
        side=side,
        victim=victim,
        kills=len(stalls_s),
        records=written,
        duplicates=counts.total() - len(counts),
        losses=written - len(counts),
        longest_stall_s=max(stalls_s),
    )


class _Supervised:
    """A side that is started again whenever it was killed."""

    def __init__(self, bed: Bed, started: list[str], name: str) -> None:
        self._bed = bed
        self._command = started
        self._name = name
        self._starts = 0
        self._process = self._start()

    def _start(self) -> SideProcess:
        self._starts += 1
        return SideProcess.start(self._command, self._bed.folder / f"{self._name}-{self._starts}.log")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def kill(self, victim: Victim) -> None:
        if victim is Victim.EVERYTHING:
            self._process.kill()
            self._process = self._start()
            return
        self._process.observe()
        pid = max(self._process.tree.spark_worker_pids())
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        self._process.stop()


class _Load:
    """RECORDS_PER_S numbered records per second, over all partitions in turn."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 5, "compression.type": "lz4", "log_level": 2}
        )
        self._enough = threading.Event()
        self._sent = 0
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _send(self) -> None:
        began = time.monotonic()
        while not self._enough.wait(0.01):
            while self._sent < (time.monotonic() - began) * RECORDS_PER_S:
                value = (
                    b"%d and as many bytes more as make a hundred, so that a record is not only its number"
                    % self._sent
                )
                self._producer.produce(_TOPIC, value, partition=self._sent % PARTITIONS)
                self._sent += 1
            self._producer.poll(0)

    def stop(self) -> int:
        """Return the number of records that were written."""
        self._enough.set()
        self._thread.join()
        if left := self._producer.flush(30):
            raise BenchError(f"{left} records could not be written to the source")
        return self._sent


class _Watch:
    """Looks at the target's end offsets, partition by partition."""

    def __init__(self, bootstrap: str, topic: str, deadline: float) -> None:
        self._wire = Wire.connect(bootstrap)
        self._topic = topic
        self._deadline = deadline

    def until_all_flow(self, at_least_s: float) -> float:
        """Watch until every partition gets records again; the longest time in which one got none."""
        began = time.monotonic()
        ends, moved_at, longest = self._ends(), [began] * PARTITIONS, [0.0] * PARTITIONS
        flows = [False] * PARTITIONS
        while True:
            time.sleep(_POLL_S)
            now = time.monotonic()
            for partition, end in enumerate(self._ends()):
                if end > ends[partition]:
                    longest[partition] = max(longest[partition], now - moved_at[partition])
                    moved_at[partition], ends[partition], flows[partition] = now, end, True
            recently = all(now - moved < _FLOWS_WITHIN_S for moved in moved_at)
            if all(flows) and recently and now - began >= at_least_s:
                return max(longest)
            if now > self._deadline:
                still = [partition for partition, flowing in enumerate(flows) if not flowing]
                raise BenchError(f"no records in partitions {still} for {now - began:.0f} s")

    def until_settled(self, records: int) -> None:
        """Until all have arrived, and nothing more comes."""
        settled_at, total = time.monotonic(), -1
        while total < records or time.monotonic() - settled_at < _SETTLED_S:
            time.sleep(_POLL_S)
            now_there = sum(self._ends())
            if now_there != total:
                settled_at, total = time.monotonic(), now_there
            if time.monotonic() > self._deadline:
                raise BenchError(f"{total} of {records} records at the end of the drill's {DRILL_S:.0f} s")

    def _ends(self) -> list[int]:
        return self._wire.end_offsets(self._topic, PARTITIONS)


def _counted(bootstrap: str, topic: str, deadline: float) -> Counter[int]:
    """Count how often each number is there."""
    wire = Wire.connect(bootstrap)
    left = {partition: end for partition, end in enumerate(wire.end_offsets(topic, PARTITIONS)) if end}
    wire.close()
    counts: Counter[int] = Counter()
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench-drill", "enable.auto.commit": False}
    )
    try:
        # From 0, not from the beginning: see `bench.topics` on librdkafka's ListOffsets.
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            if time.monotonic() > deadline:
                raise BenchError(f"the target was not read up to {left} within the drill's {DRILL_S:.0f} s")
            for message in consumer.consume(10_000, timeout=1.0):
                counts[int((message.value() or b"").split(b" ", 1)[0])] += 1
                partition, offset = message.partition(), message.offset()
                if partition is not None and offset is not None and offset + 1 >= left.get(partition, 0):
                    left.pop(partition, None)
    finally:
        consumer.close()
    return counts
