"""Tells readers that work only while somebody looks whether somebody does."""

import time
from collections.abc import Callable
from typing import Final

_LOOKED_AT_S: Final = 30.0
_PAUSE_S: Final = 10.0


class Attention:
    """Tells whether somebody looks. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_at: float | None = None
        self._paused_until = 0.0

    def look(self) -> None:
        """Somebody looks: others may read on for half a minute."""
        self._looked_at = self._clock()

    def pause(self) -> None:
        """Note that nothing can be read: the next try can wait."""
        self._paused_until = self._clock() + _PAUSE_S

    @property
    def is_paused(self) -> bool:
        return self._clock() < self._paused_until

    @property
    def is_given(self) -> bool:
        """Tells whether somebody has looked in the last half minute."""
        return self._looked_at is not None and self._clock() - self._looked_at <= _LOOKED_AT_S
