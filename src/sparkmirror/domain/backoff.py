"""Computes delays before retries: exponential, with jitter, bounded (KIP-580)."""

from dataclasses import dataclass

_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """`first_s` after the first failure, doubled for each further one, never above `max_s`."""

    first_s: float
    max_s: float

    def delay_s(self, failures: int, randomness: float) -> float:
        """`failures` counts from 1; `randomness` is a number in [0, 1)."""
        delay = self.first_s * 2.0 ** min(failures - 1, 30)
        return min(self.max_s, delay * (1 + _JITTER * (2 * randomness - 1)))
