"""How commands that run for ever are ended: the first signal stops in order, the second at once."""

import logging
import os
import signal
from collections.abc import Callable
from types import FrameType

_log = logging.getLogger(__name__)

_EXIT_AT_ONCE = 130


def stop_on_signals(stop: Callable[[], None]) -> None:
    """On SIGINT and SIGTERM. To be called after Spark has started in the main thread: it takes SIGINT."""
    heard = False

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal heard
        if heard:
            os._exit(_EXIT_AT_ONCE if number == signal.SIGINT else 128 + number)
        heard = True
        _log.info("stopping in order; a second signal ends it at once")
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
