"""Limits the rate of a flow and its topics: the configured limits, each task's share, the throttle times.

Tasks don't communicate: each keeps to its share. A rate counts the bytes of batches as they are
written to the target. Times are seconds of one monotonic clock given as an argument.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.policies.java_regex import JavaPattern, compile_list

FLOW_KEY: Final = "max.bytes.per.second"
TOPICS_KEY: Final = "topic.max.bytes.per.second"

BURST_S: Final = 1.0
"""Unused rate may be used later, up to the bytes of this time."""

_ASK_AGAIN_S: Final = 0.1
"""A flow at its limit fetches the bytes of this time at once, because many small fetches would be costly."""

_UNITS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The configured limits, in bytes per second. `topics` pairs Java regexes with rates.

    A regex is for whole names as on the source; the first that matches counts, for each topic on its own.
    Raises ConfigError for one that can't be used.
    """

    flow: int | None = None
    topics: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        self._compiled()

    def __bool__(self) -> bool:
        """Whether anything is limited."""
        return self.flow is not None or bool(self.topics)

    def __str__(self) -> str:
        """The limits in words: `at most 5 MB/s, each topic of orders.* at most 500 KB/s`."""
        parts = [] if self.flow is None else [f"at most {_shown(self.flow)}"]
        parts += [f"each topic of {pattern} at most {_shown(rate)}" for pattern, rate in self.topics]
        return ", ".join(parts) or "without limits"

    def topic_rates(self) -> "TopicRates":
        return TopicRates(self._compiled())

    def _compiled(self) -> list[tuple[JavaPattern, int]]:
        # One by one: in a joined pattern the flags of one would reach the next.
        return [(compile_list([pattern], TOPICS_KEY), rate) for pattern, rate in self.topics]


NO_LIMITS: Final = RateLimits()


class TopicRates:
    """Finds the rate of each topic, and caches it."""

    def __init__(self, patterns: Sequence[tuple[JavaPattern, int]]) -> None:
        self._patterns = patterns
        self._found: dict[str, int | None] = {}

    def of(self, topic: str) -> int | None:
        if topic not in self._found:
            self._found[topic] = next(
                (rate for pattern, rate in self._patterns if pattern.fullmatch(topic)), None
            )
        return self._found[topic]


@dataclass(frozen=True, slots=True)
class Shares:
    """The part of the flow's rate, and of each topic's, that a task may use; all of a topic not listed."""

    flow: float = 1.0
    topics: Mapping[str, float] = field(default_factory=dict)


ALL: Final = Shares()
"""The shares of a single task."""


def shares(tasks: Sequence[Collection[TopicPartition]]) -> list[Shares]:
    """The shares of each task by its partitions: all tasks get the same part of the flow's rate."""
    counts = [Counter(partition.topic for partition in partitions) for partitions in tasks]
    totals = Counter(partition.topic for partitions in tasks for partition in partitions)
    return [
        Shares(
            1 / len(tasks),
            {topic: held / totals[topic] for topic, held in count.items() if held < totals[topic]},
        )
        for count in counts
    ]


class TokenBucket:
    """A token bucket: `rate` bytes more each second, at most those of `BURST_S` in store. Starts empty.

    A request is always granted whole, and may leave the bucket in debt.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._taken = 0
        self._stored = 0.0
        self._at = now

    @property
    def taken(self) -> int:
        """Return all bytes ever taken; after a `take` it is a place in the queue for `delay_s`."""
        return self._taken

    def take(self, size: int, now: float) -> None:
        self._refill(now)
        self._taken += size
        self._stored -= size

    def left(self, now: float) -> float:
        """Bytes in store; negative is a debt."""
        self._refill(now)
        return self._stored

    def delay_s(self, now: float, taken: int | None = None) -> float:
        """The time until the debt is paid: that of now, or of the moment when `taken` was the total."""
        later = 0 if taken is None else self._taken - taken
        return max(0.0, -(self.left(now) + later) / self._rate)

    def refilled_s(self, seconds: float, now: float) -> float:
        """The time until the store holds the bytes of `seconds`."""
        return max(0.0, seconds - self.left(now) / self._rate)

    def change(self, rate: float, now: float) -> None:
        """Change the rate from now on; a debt stays."""
        self._refill(now)
        self._rate = rate
        self._stored = min(self._stored, rate * BURST_S)

    def _refill(self, now: float) -> None:
        elapsed_s = max(0.0, now - self._at)
        self._stored = min(self._rate * BURST_S, self._stored + self._rate * elapsed_s)
        self._at = max(self._at, now)


class TaskLimits:
    """The limits of a copy task, used by one thread.

    The flow's limit bounds how much may be fetched (`allowed`). A topic's limit throttles each of its
    partitions until that partition's bytes are paid for, so that partitions take turns.
    """

    def __init__(self, limits: RateLimits, shares: Shares, now: float) -> None:
        self._shares = shares
        self._flow: TokenBucket | None = None
        self._limited_topics = False
        self._rates = NO_LIMITS.topic_rates()
        self._topics: dict[str, TokenBucket] = {}
        self._turns: dict[TopicPartition, int] = {}
        self.change(limits, now)

    def change(self, limits: RateLimits, now: float) -> None:
        """Use these limits from now on. Callers that wait ask again."""
        flow_rate = None if limits.flow is None else limits.flow * self._shares.flow
        self._flow = _changed(self._flow, flow_rate, now)
        self._limited_topics = bool(limits.topics)
        self._rates = limits.topic_rates()
        for topic, bucket in list(self._topics.items()):
            if _changed(bucket, self._topic_rate(topic), now) is None:
                del self._topics[topic]
        self._turns = {
            partition: turn for partition, turn in self._turns.items() if partition.topic in self._topics
        }

    def taken(self, partition: TopicPartition, size: int, now: float) -> float:
        """Count bytes of a partition that are about to be written; return its throttle time or 0.0."""
        if self._flow is not None:
            self._flow.take(size, now)
        if not self._limited_topics or size == 0:  # no bytes, no place in the queue
            return 0.0
        bucket = self._bucket(partition.topic, now)
        if bucket is None:
            return 0.0
        bucket.take(size, now)
        self._turns[partition] = bucket.taken
        return bucket.delay_s(now)

    def throttle_s(self, partition: TopicPartition, now: float) -> float:
        """The time for which a partition is still throttled; 0.0: it may continue."""
        turn = self._turns.get(partition)
        return 0.0 if turn is None else self._topics[partition.topic].delay_s(now, turn)

    def allowed(self, budget_bytes: int, now: float) -> int:
        """The bytes that a task may fetch, up to `budget_bytes`; 0: none before `flow_throttle_s`."""
        if self._flow is None:
            return budget_bytes
        return 0 if self.flow_throttle_s(now) > 0 else min(budget_bytes, max(1, int(self._flow.left(now))))

    def flow_throttle_s(self, now: float) -> float:
        """The time until more may be fetched; 0.0: now."""
        return 0.0 if self._flow is None else self._flow.refilled_s(_ASK_AGAIN_S, now)

    def _bucket(self, topic: str, now: float) -> TokenBucket | None:
        bucket = self._topics.get(topic)
        if bucket is None and (rate := self._topic_rate(topic)) is not None:
            bucket = self._topics[topic] = TokenBucket(rate, now)
        return bucket

    def _topic_rate(self, topic: str) -> float | None:
        rate = self._rates.of(topic)
        return None if rate is None else rate * self._shares.topics.get(topic, 1.0)


def _changed(bucket: TokenBucket | None, rate: float | None, now: float) -> TokenBucket | None:
    if bucket is None or rate is None:
        return None if rate is None else TokenBucket(rate, now)
    bucket.change(rate, now)
    return bucket


def _shown(rate: int) -> str:
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if rate >= scale), (1, "B"))
    return f"{rate / scale:g} {unit}/s"
