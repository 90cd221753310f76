"""Waits for a condition; no test sleeps for a time."""

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

_POLL_S: Final = 0.1
_POLL_MAX_S: Final = 1.0
_POLL_SHARE: Final = 0.3
"""The largest share of the waiting time that the probe itself may take, as it uses brokers' CPU."""

_PATIENCE_MAX: Final = 3.0

T = TypeVar("T")


def patience() -> float:
    """Return the factor by which waits are longer on a busy machine than with two processes a core."""
    waiting, _, _ = os.getloadavg()
    return min(max(1.0, waiting / (2 * (os.cpu_count() or 1))), _PATIENCE_MAX)


def await_value(probe: Callable[[], T | None], timeout_s: float, describe: Callable[[], str]) -> T:
    """Wait for a result of the probe other than None and False; `describe` explains a timeout.

    An overloaded machine is given `patience` times as long: what is not there by then will not come.
    """
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        value = probe()
        if value is not None and value is not False:
            return value
        answered = time.monotonic()
        limit_s = timeout_s * patience()
        assert answered < began + limit_s, f"not within {limit_s:.0f} s: {describe()}"
        time.sleep(min(max(_POLL_S, (answered - asked) / _POLL_SHARE), _POLL_MAX_S))
