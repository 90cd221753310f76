"""Prepares the process of a command: its reactions to signals, and streams that can't take its output."""

import codecs
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Final, TextIO

from sparkmirror.cli.exit_codes import NOT_FINE, READER_GONE

_log = logging.getLogger(__name__)

_EXIT_AT_ONCE: Final = 130
_ESCAPE: Final = "sparkmirror.escape"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stopping:
    """Holds what the first signal calls, as soon as that is known."""

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self.number: int | None = None

    def on_signal(self, number: int, _: FrameType | None) -> None:
        if self.number is not None:
            os._exit(_EXIT_AT_ONCE if number == signal.SIGINT else 128 + number)
        self.number = number
        _log.info("%s: stopping in order; a second signal ends it at once", signal.Signals(number).name)
        if self.stop is not None:
            self.stop()


_stopping = _Stopping()


@contextmanager
def stoppable() -> Iterator[None]:
    """Keep a SIGTERM or SIGHUP for the `stop_on_signals` to come, while the command is loaded.

    A SIGINT interrupts it, as any other command.
    """
    global _stopping  # noqa: PLW0603 - a process has one reaction to signals
    _stopping = _Stopping()
    before = {number: signal.signal(number, _stopping.on_signal) for number in _handled()[1:]}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first SIGINT, SIGTERM or SIGHUP; the second ends the process at once.

    One that came while the command was loaded (`stoppable`) is the first. SIGHUP comes when a terminal is
    closed; under nohup it stays ignored.
    """
    _stopping.stop = stop
    for number in _handled():
        signal.signal(number, _stopping.on_signal)
    if _stopping.number is not None:
        stop()


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt at each of these signals, so that what was started is ended.

    Also SIGINT, which shells let background jobs ignore.
    """
    for number in _handled():
        signal.signal(number, signal.default_int_handler)


def _handled() -> list[signal.Signals]:
    """Return the signals to handle: all but a SIGHUP that is ignored, as nohup wants it."""
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in _SIGNALS if not (number is signal.SIGHUP and is_nohup)]


class OutputError(Exception):
    """Standard output can't be written, or its reader has ended. No command handles that: `main` does."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Output(TextIOWrapper):
    """Standard output. argparse and rich take an OSError for themselves: what it raises is none."""

    def write(self, text: str, /) -> int:
        with _unwritten():
            return super().write(text)

    def flush(self) -> None:
        with _unwritten():
            super().flush()


@contextmanager
def _unwritten() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error) from error


def check_output() -> None:
    """Let each write to standard output that fails raise OutputError."""
    stream = sys.stdout
    if stream is None:  # closed by who has started this, as services are
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as this runs
    elif type(stream) is TextIOWrapper:  # not what a test has put there
        encoding, errors, by_line = stream.encoding, stream.errors, stream.line_buffering
        sys.stdout = _Output(stream.detach(), encoding, errors, line_buffering=by_line)


def give_output_up(error: OutputError) -> int:
    """Return the exit code after this error, and say why; a reader that has seen enough is none."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written at the end
    if isinstance(error.reason, BrokenPipeError):
        return READER_GONE
    sys.stderr.write(f"sparkmirror: the output can't be written: {error.reason.strerror}\n")
    return NOT_FINE


def escape_unencodable(*streams: TextIO) -> None:
    """Let these streams escape characters that their encoding lacks, as JSON does: JSON stays JSON."""
    codecs.register_error(_ESCAPE, _escape)
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_ESCAPE)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
