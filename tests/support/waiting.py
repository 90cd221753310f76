"""Waits for a condition; no test sleeps for a time."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

_POLL_S: Final = 0.1
_POLL_MAX_S: Final = 1.0
_POLL_SHARE: Final = 0.3
"""The largest share of the waiting time that the probe itself may take, as it uses brokers' CPU."""

T = TypeVar("T")


def await_value(probe: Callable[[], T | None], timeout_s: float, describe: Callable[[], str]) -> T:
    """Wait for a result of the probe other than None and False; `describe` explains a timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        asked = time.monotonic()
        value = probe()
        if value is not None and value is not False:
            return value
        answered = time.monotonic()
        assert answered < deadline, f"not within {timeout_s:g} s: {describe()}"
        time.sleep(min(max(_POLL_S, (answered - asked) / _POLL_SHARE), _POLL_MAX_S))
