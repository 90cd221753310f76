"""Tells systemd how a command is, as `Type=notify` and `WatchdogSec=` expect (sd_notify).

What pings the watchdog is the loop that does the command's work: a loop that hangs pings no more, and systemd
starts the process again.
"""

import logging
import os
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final

_log = logging.getLogger(__name__)

_INTERVAL_S: Final = 10.0
_TURN_MAX_S: Final = 300.0
"""The longest turn of a loop: a request without a response costs a minute, and a turn has several."""
_STATUS_MAX: Final = 500


class ServiceManager:
    """Does nothing where no service manager asks. One owner: the thread of the loop that is watched."""

    def __init__(
        self,
        environ: MutableMapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the variables out of the environment: processes that are started here are not the service."""
        self._clock = clock
        self._address = environ.pop("NOTIFY_SOCKET", "")
        limit_s = _watchdog_s(environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", ""))
        self._interval_s = min(_INTERVAL_S, limit_s / 3)
        self._is_ready = False
        self._due_at = clock()

    def turn(self, status: Callable[[], str], *, is_ready: bool) -> None:
        """Say that the loop has made a turn; call it in each, from the loop's thread.

        Before the command is ready, this lengthens the time that its start may take.
        """
        now, becomes_ready = self._clock(), is_ready and not self._is_ready
        if not self._address or (now < self._due_at and not becomes_ready):
            return
        self._due_at = now + self._interval_s
        self._is_ready = self._is_ready or is_ready
        words = ["READY=1"] if becomes_ready else []
        alive = "WATCHDOG=1" if self._is_ready else f"EXTEND_TIMEOUT_USEC={_TURN_MAX_S * 1e6:.0f}"
        self._send(*words, alive, f"STATUS={_one_line(status())}")

    def stopping(self) -> None:
        """Say that the command ends in order now."""
        if self._address:
            self._send("STOPPING=1", "STATUS=stopping in order")

    def _send(self, *words: str) -> None:
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        text = "\n".join(words).encode(errors="backslashreplace")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(text, socket.MSG_DONTWAIT, address)
        except OSError as error:
            _log.warning("NOTIFY_SOCKET=%s can't be told: %s", self._address, error)


def _watchdog_s(limit_us: str, pid: str) -> float:
    """The time without a ping after which the service manager ends this process."""
    is_ours = not pid or pid == str(os.getpid())
    return int(limit_us) / 1e6 if is_ours and limit_us.isdecimal() and int(limit_us) else float("inf")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_STATUS_MAX]
