"""Client quotas of a cluster in memory, for all its clients together, measured as brokers do.

A rate is that of the last `WINDOW_S`; what exceeds it is answered with the time after which it does not. A
broker counts a Fetch response that is throttled as nothing, and sends an empty one instead.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest

if TYPE_CHECKING:
    from tests.memory.cluster import Scheduler

WINDOW_S: Final = 10.0


class ByteRate:
    """`rate` is in bytes per second, None without a quota; `bytes` counts what was let through."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.rate: float | None = None
        self.bytes = 0
        self._scheduler = scheduler
        self._counted: deque[tuple[float, int]] = deque()

    @property
    def window_bytes(self) -> int:
        """The most that a broker reads for one response: less than would be throttled by itself."""
        return 1 << 30 if self.rate is None else int(self.rate * WINDOW_S * 0.9)

    def throttle_s(self, size: int, *, counts_all: bool) -> float:
        """Return the throttle time of these bytes; they are counted if `counts_all`, or if they fit."""
        if self.rate is None:
            return 0.0
        now = self._scheduler.time()
        while self._counted and self._counted[0][0] <= now - WINDOW_S:
            self._counted.popleft()
        measured = (sum(each for _, each in self._counted) + size) / WINDOW_S
        throttle_s = max(0.0, (measured - self.rate) / self.rate * WINDOW_S)
        if counts_all or not throttle_s:
            self._counted.append((now, size))
            self.bytes += size
        return throttle_s


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
