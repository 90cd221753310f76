"""Measures how long each partition of the target receives no record."""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import confluent_kafka as confluent
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.faults.side import Side
from tests.support.background import BackgroundWatch

_TICK_S: Final = 0.1
_RESPONSE_TIMEOUT_S: Final = 2.0


class Stall(NamedTuple):
    """A partition without a new record for so long, until `ended_at` (monotonic)."""

    partition: int
    seconds: float
    ended_at: float


class EndOffsets:
    """Reads where the partitions of a side's topic end, from the brokers directly. One owner."""

    def __init__(self, side: Side) -> None:
        self._partitions = [confluent.TopicPartition(side.topic, number) for number in range(side.partitions)]
        self._servers = side.cluster.bootstrap_servers
        self._admin = self._new_admin()

    def read(self) -> Mapping[int, int]:
        """The end offsets of the partitions whose leaders answer."""
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = self._admin.list_offsets(
            dict.fromkeys(self._partitions, latest), request_timeout=_RESPONSE_TIMEOUT_S
        )
        ends = {}
        for partition, future in asked.items():
            with suppress(confluent.KafkaException):
                found = future.result().offset
                if found >= 0:  # librdkafka reports a leader that did not respond so, without an error
                    ends[partition.partition] = found
        if len(ends) < len(asked):
            # librdkafka would continue asking the broker that led the others before.
            self._admin = self._new_admin()
        return ends

    def _new_admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._servers, "log_level": 0})


class StallWatch(BackgroundWatch):
    """Watches a side's topic for as long as the block lasts; the source must get records all the time.

    It connects to the brokers directly. While no broker responds, no progress is seen.
    """

    def __init__(self, side: Side) -> None:
        super().__init__()
        self._end_offsets = EndOffsets(side)
        began = time.monotonic()
        self._ends: dict[int, int] = {}
        self._moved_at = dict.fromkeys(range(side.partitions), began)
        self._stalls: list[Stall] = []

    def flows_since(self, moment: float) -> bool:
        """Whether every partition has got records after it."""
        return min(self._moved_at.values()) > moment

    def longest(self, since: float) -> Stall | None:
        """Return the longest stall that ended after that moment."""
        ended = (stall for stall in list(self._stalls) if stall.ended_at > since)
        return max(ended, key=lambda stall: stall.seconds, default=None)

    def stalled(self) -> str:
        """The partitions that receive nothing, as text."""
        now = time.monotonic()
        stalled = [
            f"partition {number} at {self._ends.get(number)} for {now - moved_at:.1f} s"
            for number, moved_at in self._moved_at.items()
            if now - moved_at > 1.0
        ]
        return ", ".join(stalled) or "all partitions receive records"

    def _watch(self) -> None:
        while not self._stop.wait(_TICK_S):
            for number, end in self._end_offsets.read().items():
                if end > self._ends.get(number, 0):
                    now = time.monotonic()
                    self._stalls.append(Stall(number, now - self._moved_at[number], now))
                    self._moved_at[number], self._ends[number] = now, end
            if len(self._stalls) > 10_000:
                self._stalls = sorted(self._stalls, key=lambda stall: stall.seconds)[-1000:]
