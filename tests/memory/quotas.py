"""Client quotas of a cluster in memory, for all its clients together, measured as brokers do.

A rate is that of the last `SAMPLES` seconds; what exceeds it is answered with the time after which it does
not. A broker counts a Fetch response that is throttled as nothing, and sends an empty one instead.
"""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest

if TYPE_CHECKING:
    from tests.memory.cluster import Scheduler

SAMPLES: Final = 11
"""`quota.window.num`, each of `SAMPLE_S`, as by default."""
SAMPLE_S: Final = 1.0


@dataclass
class Sample:
    """The bytes of a second, or of longer where no request came in between."""

    begun: float
    last: float
    bytes: int = 0


class ByteRate:
    """Kafka's `Rate`. `rate` is in bytes per second, None without a quota; `bytes` counts what passed."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.rate: float | None = None
        self.bytes = 0
        self._scheduler = scheduler
        self._samples: deque[Sample] = deque(maxlen=SAMPLES + 1)

    @property
    def window_bytes(self) -> int:
        """The most that a broker reads for one response: more would always be throttled."""
        return 1 << 30 if self.rate is None else int(self.rate * (SAMPLES - 1) * SAMPLE_S)

    def throttle_s(self, size: int, *, counts_all: bool) -> float:
        """Return the throttle time of these bytes; they are counted if `counts_all`, or if they fit."""
        if self.rate is None:
            return 0.0
        sample = self._sample(now := self._scheduler.time())
        window_s = self._window_s(now)
        measured = (sum(each.bytes for each in self._samples) + size) / window_s
        throttle_s = round(max(0.0, (measured - self.rate) / self.rate * window_s), 3)
        if counts_all or not throttle_s:
            sample.bytes += size
            self.bytes += size
        return throttle_s

    def _sample(self, now: float) -> Sample:
        """Return the current sample, and forget those that have expired; every request is part of one."""
        if not self._samples or now - self._samples[-1].begun >= SAMPLE_S:
            self._samples.append(Sample(now, now))
        self._samples[-1].last = now
        while now - self._samples[0].last >= SAMPLES * SAMPLE_S:
            self._samples.popleft()
        return self._samples[-1]

    def _window_s(self, now: float) -> float:
        """Return the time since the oldest sample began; samples that lack count in full, but for one."""
        elapsed_s = now - self._samples[0].begun
        return elapsed_s + max(0, SAMPLES - 1 - int(elapsed_s / SAMPLE_S)) * SAMPLE_S


class Quotas:
    """Set by a test. `requests_s` is the throttle time of responses: of all, but of every other Fetch."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.producer, self.consumer = ByteRate(scheduler), ByteRate(scheduler)
        self.requests_s: float = 0.0
        self._lets_fetch = True

    def set(self, *, producer: float | None = None, consumer: float | None = None) -> None:
        """Set a rate in bytes per second, as `producer_byte_rate` and `consumer_byte_rate`."""
        self.producer.rate, self.consumer.rate = producer, consumer

    @property
    def are_set(self) -> bool:
        return self.requests_s > 0 or self.producer.rate is not None or self.consumer.rate is not None

    def throttle_ms(self, api_key: int, request_bytes: int, response_bytes: int) -> int:
        throttle_s = self.requests_s
        if api_key == ProduceRequest.API_KEY:
            throttle_s = max(throttle_s, self.producer.throttle_s(request_bytes, counts_all=True))
        if api_key == FetchRequest.API_KEY:
            self._lets_fetch = not self._lets_fetch or not throttle_s
            throttle_s = 0.0 if self._lets_fetch else throttle_s
            throttle_s = max(throttle_s, self.consumer.throttle_s(response_bytes, counts_all=False))
        return int(throttle_s * 1000)
