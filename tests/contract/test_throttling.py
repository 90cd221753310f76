"""Throttling of a copy loop: rate limits hold, and can be changed while it runs."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.policies.rate_limits import BURST_S, NO_LIMITS, RateLimits
from tests.contract.copying import STOP_TIMEOUT_S, Bench, remote
from tests.support.broker_data import append, end_offsets
from tests.support.waiting import await_value

SIZE: Final = 100_000
RECORDS: Final = 60
PARTITIONS: Final = 3
RATE: Final = 2_000_000
"""Bytes per second; copying all records at this rate takes 9 s."""


@contextmanager
def running(plan: TaskPlan) -> Iterator[CopyLoop]:
    loop = CopyLoop(plan)
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield loop
    finally:
        loop.stop()
        thread.join(STOP_TIMEOUT_S)
        assert not thread.is_alive()


def fill(bench: Bench, topic: str) -> list[TopicPartition]:
    bench.create(topic, partitions=PARTITIONS)
    for number in range(PARTITIONS):
        append(bench.source, topic, [(b"k", b"v" * SIZE)] * RECORDS, partition=number)
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def copied(bench: Bench, topic: str) -> int:
    return SIZE * sum(end_offsets(bench.target, [remote(topic)]).values())


@pytest.mark.parametrize(
    ("topic", "limits"),
    [("paced.flow", RateLimits(RATE)), ("paced.topic", RateLimits(topics=(("paced.*", RATE),)))],
)
def test_limits_hold_until_they_are_changed(bench: Bench, topic: str, limits: RateLimits) -> None:
    partitions = fill(bench, topic)
    # Each partition may exceed the rate by its first fetch, and each released one by one more.
    ahead = RATE * BURST_S + PARTITIONS * 300_000
    plan = replace(bench.plan(*partitions, partition_fetch_bytes_max=200_000), rate_limits=limits)
    began = time.monotonic()
    with running(plan) as loop:

        def copied_several_fetches() -> bool:
            found = copied(bench, topic)
            assert found <= RATE * (time.monotonic() - began) + ahead
            return found >= 6_000_000

        await_value(copied_several_fetches, 30, lambda: f"{copied(bench, topic)} bytes")
        loop.change_limits(NO_LIMITS)
        await_value(
            lambda: copied(bench, topic) == PARTITIONS * RECORDS * SIZE, 20, lambda: f"{copied(bench, topic)}"
        )
