"""`python -m bench.launcher COMMAND …`: run it, adopt every orphan below it, end when the last process has.

It is the subreaper (PR_SET_CHILD_SUBREAPER), the parent of all orphans, so that no CPU second and no
leftover process escapes the measurement. SIGTERM is handed to the command. When the benchmark itself dies,
the kernel sends SIGTERM too, and then everything is killed: no process is left to wait for an orderly end.
"""

import contextlib
import ctypes
import os
import signal
import sys
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _adopt_orphans() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_PDEATHSIG, signal.SIGTERM)):
        if libc.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl failed")


def _reap_all(command_pid: int) -> int:
    """Wait until no child is left; the command's exit code."""
    exit_code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return exit_code
        if pid == command_pid:
            exit_code = os.waitstatus_to_exitcode(status)


def main(command: list[str]) -> int:
    _adopt_orphans()
    benchmark_pid = os.getppid()
    pid = os.posix_spawnp(command[0], command, os.environ)

    def hand_on(number: int, _frame: FrameType | None) -> None:
        if os.getppid() != benchmark_pid:
            os.killpg(0, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    signal.signal(signal.SIGTERM, hand_on)
    return abs(_reap_all(pid))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
