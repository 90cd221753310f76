"""Handles signals: `run` and `worker` stop in order, other commands are interrupted as by Ctrl-C."""

import logging
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

_log = logging.getLogger(__name__)

_EXIT_AT_ONCE: Final = 130
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first SIGINT, SIGTERM or SIGHUP; the second ends the process at once.

    SIGHUP comes when a terminal is closed; under nohup it stays ignored. To be called after Spark has started
    in the main thread: it takes SIGINT.
    """
    is_stopping = False

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping:
            os._exit(_EXIT_AT_ONCE if number == signal.SIGINT else 128 + number)
        is_stopping = True
        _log.info("%s: stopping in order; a second signal ends it at once", signal.Signals(number).name)
        stop()

    for number in _handled():
        signal.signal(number, on_signal)


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt at each of these signals, so that what was started is ended.

    Also SIGINT, which shells let background jobs ignore.
    """
    for number in _handled():
        signal.signal(number, signal.default_int_handler)


def _handled() -> list[signal.Signals]:
    """All but a SIGHUP that is ignored, as nohup wants it."""
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in _SIGNALS if not (number is signal.SIGHUP and is_nohup)]
