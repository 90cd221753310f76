"""One side as a measured process: started in a session of its own under `bench.launcher`, always ended.

Everything it used is known at the end from the launcher's wait status: every process, start-up and shutdown
included, the launcher's own 0.05 s too.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.process_tree import ProcessTree

STOP_TIMEOUT_S = 20.0
_LOG_TAIL_BYTES = 2000
_TREE_REFRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Seconds until the last process was gone, CPU of the side's whole life, whether it had to be killed."""

    stop_s: float
    total_cpu_s: float
    killed: bool


@dataclass(slots=True)
class SideProcess:
    """A running side. Use as a context manager: leaving it kills what `stop` has not ended."""

    launcher: subprocess.Popen[bytes]
    log: Path
    tree: ProcessTree
    started_at: float
    peak_pss_mb: float = 0.0
    peak_worker_pss_mb: float = 0.0
    _refreshed_at: float = field(default=0.0)

    @classmethod
    def start(cls, command: Sequence[str], log: Path) -> "SideProcess":
        with log.open("wb") as output:
            launcher = subprocess.Popen(
                [sys.executable, "-m", "bench.launcher", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return cls(launcher, log, ProcessTree(launcher.pid), time.monotonic())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.launcher.returncode is None:
            self.kill()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.started_at

    def has_ended(self) -> bool:
        """Whether it ended by itself; leaves the launcher's account to be collected."""
        return os.waitid(os.P_PID, self.launcher.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def log_tail(self) -> str:
        return self.log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()

    def cpu_s(self) -> float:
        """CPU so far; about once a second also looks for new processes and at memory."""
        if time.monotonic() - self._refreshed_at > _TREE_REFRESH_S:
            self.observe()
        return self.tree.cpu_s()

    def observe(self) -> None:
        self.tree.refresh()
        self.peak_pss_mb = max(self.peak_pss_mb, self.tree.pss_mb())
        self.peak_worker_pss_mb = max(self.peak_worker_pss_mb, *self.tree.spark_worker_pss_mb(), 0.0)
        self._refreshed_at = time.monotonic()

    def wait(self, timeout_s: float) -> Ended:
        """Wait for a side that ends by itself."""
        return self._collect(time.monotonic() + timeout_s)

    def stop(self) -> Ended:
        """Ask with SIGTERM, as an operator would, and kill what is left after STOP_TIMEOUT_S."""
        self.tree.refresh()
        with suppress(ProcessLookupError):
            os.kill(self.launcher.pid, signal.SIGTERM)
        return self._collect(time.monotonic() + STOP_TIMEOUT_S)

    def _collect(self, deadline: float) -> Ended:
        began = time.monotonic()
        usage = self._reaped()
        while usage is None and time.monotonic() < deadline:
            self.tree.cpu_s()
            time.sleep(0.05)
            usage = self._reaped()
        killed = usage is None
        cpu_s = self.kill() if usage is None else usage
        return Ended(time.monotonic() - began, cpu_s + self.tree.lost_cpu_s, killed)

    @contextmanager
    def halted(self) -> Iterator[None]:
        """SIGSTOP for every process of the side, and SIGCONT after the block."""
        self.tree.refresh()
        pids = self.tree.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def kill(self) -> float:
        """SIGKILL for every process of the side, until none is left; the CPU seconds of its whole life."""
        self.tree.refresh()
        usage = None
        while usage is None:
            for pid in self.tree.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
            self.tree.refresh()
            usage = self._reaped()
        return usage

    def _reaped(self) -> float | None:
        """CPU of the launcher and of all it waited for, once it has ended; None while it runs."""
        pid, status, usage = os.wait4(self.launcher.pid, os.WNOHANG)
        if not pid:
            return None
        self.launcher.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime


@contextmanager
def probe(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A module of this package as a process of its own (no GIL is shared), ended with the block."""
    command = [sys.executable, "-m", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
