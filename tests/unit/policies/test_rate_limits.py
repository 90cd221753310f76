"""Rate limits: parsing, shares of tasks, token buckets, and throttle times."""

import heapq
import pickle
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.policies.rate_limits import (
    ALL,
    BURST_S,
    NO_LIMITS,
    RateLimits,
    Shares,
    TaskLimits,
    TokenBucket,
    shares,
)

ORDERS = TopicPartition("orders", 0)
BEGIN = 1000.0


def partitions(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


# limits of a flow


def test_first_pattern_that_matches_the_whole_topic_name_applies() -> None:
    rates = RateLimits(topics=(("orders", 1), ("(?i)o.*", 2), ("PAY.*", 3))).topic_rates()
    topics = ("orders", "Orders", "o", "PAYMENTS", "payments", "my.orders")
    assert [rates.of(topic) for topic in topics] == [1, 2, 2, 3, None, None]
    assert [rates.of(topic) for topic in topics] == [1, 2, 2, 3, None, None], "asked again"


def test_a_pattern_that_java_refuses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"topic\.max\.bytes\.per\.second"):
        RateLimits(topics=(("(", 5),))


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (NO_LIMITS, "without limits"),
        (RateLimits(5_000_000), "at most 5 MB/s"),
        (RateLimits(999), "at most 999 B/s"),
        (RateLimits(2_500_000_000), "at most 2.5 GB/s"),
        (RateLimits(None, (("a.*", 1500),)), "each topic of a.* at most 1.5 KB/s"),
        (
            RateLimits(10**6, (("a", 1), ("b", 2))),
            "at most 1 MB/s, each topic of a at most 1 B/s, each topic of b at most 2 B/s",
        ),
    ],
)
def test_limits_have_a_readable_text(limits: RateLimits, words: str) -> None:
    assert str(limits) == words
    assert bool(limits) is (limits != NO_LIMITS)


def test_limits_can_be_pickled() -> None:
    limits = RateLimits(5, (("a.*", 1),))
    assert pickle.loads(pickle.dumps((limits, ALL))) == (limits, ALL)


# shares of tasks

HELD = [TopicPartition(topic, number) for topic in "abc" for number in range(3)]


def test_a_topic_in_one_task_gets_its_whole_rate() -> None:
    tasks = [partitions("a", 3)[:2], [*partitions("a", 3)[2:], *partitions("b", 2)]]
    assert shares(tasks) == [Shares(0.5, {"a": 2 / 3}), Shares(0.5, {"a": 1 / 3})]


@given(st.lists(st.lists(st.sampled_from(HELD), max_size=6), min_size=1, max_size=4))
def test_shares_of_all_tasks_add_up_to_one(tasks: list[list[TopicPartition]]) -> None:
    all_shares = shares(tasks)
    assert sum(share.flow for share in all_shares) == pytest.approx(1.0)
    for topic in {partition.topic for held in tasks for partition in held}:
        parts = [
            share.topics.get(topic, 1.0)
            for share, held in zip(all_shares, tasks, strict=True)
            if any(partition.topic == topic for partition in held)
        ]
        assert sum(parts) == pytest.approx(1.0)


# token bucket


class Step(NamedTuple):
    """Wait, change the rate if one is given, then take unless throttled."""

    wait_s: float
    size: int
    rate: int | None


rates = st.integers(1, 10**9)
steps = st.builds(Step, st.floats(0, 10), st.integers(0, 10**8), st.none() | rates)


@given(rates, st.lists(steps, max_size=50))
def test_bucket_allows_no_more_than_rate_burst_and_last_take(rate: int, taken: list[Step]) -> None:
    now, current, allowed, fastest = BEGIN, rate, 0.0, rate
    bucket = TokenBucket(rate, now)
    passed = 0
    for step in taken:
        now += step.wait_s
        allowed += current * step.wait_s
        if step.rate is not None:
            current = step.rate
            fastest = max(fastest, current)
            bucket.change(current, now)
        if bucket.delay_s(now) == 0:
            assert passed <= (allowed + fastest * BURST_S) * (1 + 1e-9) + 1
            bucket.take(step.size, now)
            passed += step.size
    assert bucket.taken == passed


@given(rates, st.integers(1, 10**9))
def test_bucket_is_balanced_after_its_delay(rate: int, size: int) -> None:
    bucket = TokenBucket(rate, BEGIN)
    bucket.take(size, BEGIN)
    delay_s = bucket.delay_s(BEGIN)
    assert delay_s == pytest.approx(size / rate)
    assert bucket.delay_s(BEGIN + delay_s) == pytest.approx(0, abs=1e-6)
    assert bucket.left(BEGIN + delay_s + 100 * BURST_S) == rate * BURST_S, "no more than a burst is stored"


def test_a_changed_rate_takes_effect_at_once() -> None:
    bucket = TokenBucket(100, BEGIN)
    bucket.take(1000, BEGIN)
    bucket.change(1000, BEGIN + 5)  # half of the delay has passed
    assert bucket.delay_s(BEGIN + 5) == pytest.approx(0.5)
    bucket.change(10, BEGIN + 20)
    assert bucket.left(BEGIN + 20) == 10 * BURST_S, "what a faster rate had stored is gone"


def test_clock_that_steps_back_does_not_refill_the_bucket() -> None:
    bucket = TokenBucket(100, BEGIN)
    bucket.take(100, BEGIN)
    assert bucket.delay_s(BEGIN - 50) == pytest.approx(1.0)
    assert bucket.delay_s(BEGIN + 1) == 0


# limits of a task


def test_nothing_is_throttled_without_limits() -> None:
    limits = TaskLimits(NO_LIMITS, ALL, BEGIN)
    assert limits.taken(ORDERS, 10**12, BEGIN) == 0
    assert limits.throttle_s(ORDERS, BEGIN) == 0
    assert limits.allowed(10**9, BEGIN) == 10**9
    assert limits.flow_throttle_s(BEGIN) == 0


def test_topic_that_no_pattern_matches_is_not_limited() -> None:
    limits = TaskLimits(RateLimits(topics=(("pay.*", 1),)), ALL, BEGIN)
    assert limits.taken(ORDERS, 10**12, BEGIN) == 0
    assert limits.taken(TopicPartition("payments", 0), 10, BEGIN) == 10


def test_each_topic_of_a_pattern_has_the_rate_of_its_own() -> None:
    limits = TaskLimits(RateLimits(topics=((".*", 10),)), Shares(0.5, {"orders": 0.5}), BEGIN)
    assert limits.taken(ORDERS, 10, BEGIN) == 2
    assert limits.taken(TopicPartition("payments", 0), 10, BEGIN) == 1


def test_partitions_of_a_topic_are_throttled_in_turn() -> None:
    limits = TaskLimits(RateLimits(topics=(("orders", 10),)), ALL, BEGIN)
    both = partitions("orders", 2)
    assert [limits.taken(partition, 100, BEGIN) for partition in both] == [10, 20]
    assert [limits.throttle_s(partition, BEGIN + 10) for partition in both] == [0, 10]
    assert limits.taken(both[0], 100, BEGIN + 10) == 20, "behind the other"
    assert [limits.throttle_s(partition, BEGIN + 20) for partition in both] == [10, 0]


def test_partition_without_data_is_not_throttled() -> None:
    limits = TaskLimits(RateLimits(topics=(("orders", 10),)), ALL, BEGIN)
    busy, idle = partitions("orders", 2)
    limits.taken(busy, 100, BEGIN)
    assert limits.taken(idle, 0, BEGIN) == 0
    assert limits.throttle_s(idle, BEGIN) == 0


def test_a_change_shortens_and_ends_throttling() -> None:
    limits = TaskLimits(RateLimits(topics=(("orders", 10),)), ALL, BEGIN)
    both = partitions("orders", 2)
    for partition in both:
        limits.taken(partition, 100, BEGIN)
    limits.change(RateLimits(topics=((".*", 100),)), BEGIN)
    assert [limits.throttle_s(partition, BEGIN) for partition in both] == [1, 2]
    limits.change(RateLimits(topics=(("payments", 100),)), BEGIN)
    assert [limits.throttle_s(partition, BEGIN) for partition in both] == [0, 0]
    assert limits.taken(ORDERS, 10**9, BEGIN) == 0
    limits.change(RateLimits(topics=(("orders", 50),)), BEGIN)
    assert limits.taken(ORDERS, 100, BEGIN) == 2


def test_a_flow_fetches_no_more_than_its_limit_allows() -> None:
    limits = TaskLimits(RateLimits(1000), Shares(0.5), BEGIN)
    assert limits.allowed(10**6, BEGIN) == 0, "nothing is in store at first"
    now = BEGIN + limits.flow_throttle_s(BEGIN)
    assert limits.allowed(10**6, now) == 50
    assert limits.allowed(30, now) == 30
    assert limits.taken(ORDERS, 550, now) == 0, "partitions don't rest: nobody asks"
    assert limits.allowed(10**6, now) == 0
    assert limits.flow_throttle_s(now) == pytest.approx(1.1)
    assert limits.allowed(10**6, now + 100) == 500 * BURST_S
    assert limits.allowed(-5, now + 100) <= 0


def test_changed_limit_of_a_flow_takes_effect_at_once() -> None:
    limits = TaskLimits(RateLimits(10), ALL, BEGIN)
    limits.taken(ORDERS, 10_000, BEGIN)
    limits.change(RateLimits(10_000), BEGIN)
    assert limits.flow_throttle_s(BEGIN) == pytest.approx(1.1)
    limits.change(NO_LIMITS, BEGIN)
    assert limits.allowed(77, BEGIN) == 77
    limits.change(RateLimits(1), BEGIN)
    assert limits.allowed(77, BEGIN) == 0


def test_flow_with_the_lowest_limit_still_fetches() -> None:
    limits = TaskLimits(RateLimits(1), Shares(0.01), BEGIN)
    now = BEGIN + limits.flow_throttle_s(BEGIN) + 1e-6
    assert limits.allowed(10**6, now) == 1


@given(
    st.integers(1000, 10**8),
    st.lists(st.integers(1, 10**6), min_size=1, max_size=8),
    st.lists(st.tuples(st.floats(0.1, 5), st.integers(1000, 10**8)), max_size=3),
)
def test_a_topic_keeps_to_its_rate_and_never_stalls(
    rate: int, sizes: list[int], changes: list[tuple[float, int]]
) -> None:
    """Partitions that always have data, under a changing rate."""
    limits = TaskLimits(RateLimits(topics=(("orders", rate),)), ALL, BEGIN)
    now, owing, allowed, passed = BEGIN, float(sum(sizes)), 0.0, 0
    waking = [(BEGIN, number) for number in range(len(sizes))]
    for until, next_rate in [*((wait_s, rate) for wait_s, rate in changes), (2.0, rate)]:
        end = now + until
        for _ in range(40):
            at, number = waking[0]
            if at >= end:
                break
            rest_s = limits.taken(TopicPartition("orders", number), sizes[number], at)
            passed += sizes[number]
            heapq.heapreplace(waking, (at + rest_s, number))
        else:
            end = waking[0][0]
        allowed += rate * (end - now)
        assert passed <= (allowed + owing) * (1 + 1e-6) + 1, "each is ahead by what it brought last at most"
        assert passed >= allowed * (1 - 1e-6) - 1, "all of the rate is used"
        now, rate = end, next_rate
        limits.change(RateLimits(topics=(("orders", rate),)), now)
        waking = [
            (now + limits.throttle_s(TopicPartition("orders", number), now), number)
            for number in range(len(sizes))
        ]
        heapq.heapify(waking)
