"""Starts, identifies and stops processes that must not outlive us, nor be confused with others."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.02
# A background shell waits on our pipe. When we end, in whatever way, it reads the end of file and
# kills its own process group: itself and the broker. (A parent-death signal would do it on Linux only, and it
# fires when the *thread* that started the broker ends.)
_GUARD = "exec 3<&0 </dev/null; (read -r _ <&3; kill -9 0) & exec 3<&-; "


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, distinguished by its start time from a later one with the same number."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        return cls(pid, _started(pid) or "")

    def is_alive(self) -> bool:
        return self.started != "" and _started(self.pid) == self.started


class Process:
    """A process that leads a group of its own: started by us, or by a process that has ended since."""

    def __init__(self, identity: ProcessId, child: subprocess.Popen[bytes] | None = None) -> None:
        self.identity = identity
        self._child = child

    @property
    def pid(self) -> int:
        return self.identity.pid

    def is_alive(self) -> bool:
        return self._child.poll() is None if self._child else self.identity.is_alive()

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, -N for signal N.

        None while it runs, and for a process that is not our child.
        """
        return self._child.poll() if self._child else None

    def stop(self, timeout_s: float) -> bool:
        """SIGTERM, then `kill` after `timeout_s`. Whether it ended by itself."""
        self.terminate()
        orderly = self.wait(timeout_s)
        self.kill()
        return orderly

    def terminate(self) -> None:
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within the time."""
        deadline = time.monotonic() + timeout_s
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def kill(self) -> None:
        """SIGKILL the group and wait for its leader."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._child and self._child.stdin:
            self._child.stdin.close()  # ends the guard, if its broker died alone
        self.wait(timeout_s=10)


def start_process(steps: Sequence[Sequence[str]], log: Path, *, outlives_us: bool) -> Process:
    """Run commands in turn, each only if those before succeeded; the last one takes the process over.

    Output is appended to `log`. Unless it `outlives_us`, the process is killed when ours ends, in any way.
    """
    *before, last = (shlex.join(step) for step in steps)
    script = " && ".join([*before, f"exec {last}"])
    with log.open("ab") as output:
        child = subprocess.Popen(  # noqa: S603 - a script of our own, its arguments quoted
            ["/bin/sh", "-c", script if outlives_us else _GUARD + script],
            stdin=subprocess.DEVNULL if outlives_us else subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Process(ProcessId.of(child.pid), child)


def _started(pid: int) -> str | None:
    """The process's start time in the system's format; None if it doesn't run (any more)."""
    if Path("/proc/self/stat").exists():
        return _started_by_proc(pid)
    shown = subprocess.run(  # noqa: S603
        ["/bin/ps", "-o", "lstart=,stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    *started, state = shown.stdout.split() or ["", "Z"]
    return None if state.startswith("Z") else " ".join(started)


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command, in parentheses, may hold spaces and parentheses; what follows is fields 3 (state) to 52.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
