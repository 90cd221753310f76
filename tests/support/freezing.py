"""Freezes processes, which then accept connections and never respond, as on a machine that hangs."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from tests.support.waiting import await_value

_WAIT_S: Final = 30.0


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Freeze the process during the block. On busy cores it takes a while until all its threads stop."""
    os.kill(pid, signal.SIGSTOP)
    try:
        await_value(lambda: _is_stopped(pid), _WAIT_S, lambda: f"process {pid} still runs")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    threads = Path(f"/proc/{pid}/task")
    if not threads.exists():  # without Linux' /proc there is only the state of the process
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    states = {(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads.iterdir()}
    return states == {"T"}
