"""Compares ranges in a child process with a low priority, so that a running mirror goes first."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.verify.range_comparison import RangeOutcome, RangePlan, outcome_of

_NICE: Final = 10
_STOPPED: Final = "it was stopped"


class ComparisonProcess:
    """`compare` blocks; `stop` ends it from another thread, and for good."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def compare(self, plans: Sequence[RangePlan], on_outcome: Callable[[RangeOutcome], None]) -> None:
        """Call `on_outcome` once per range, in order. Raises SparkmirrorError when the process ends early."""
        if not plans:
            return
        command = [sys.executable, "-m", "sparkmirror.verify.child_process"]
        with subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            self._process = process
            try:
                if not self._is_stopped:
                    _exchange(process, plans, on_outcome)
            except (EOFError, OSError, pickle.UnpicklingError) as error:
                why = _STOPPED if self._is_stopped else f"its process ended, see the log ({error!r})"
                raise SparkmirrorError(f"the comparison did not end: {why}") from error
            finally:
                process.kill()
        if self._is_stopped:
            raise SparkmirrorError(f"the comparison did not end: {_STOPPED}")

    def stop(self) -> None:
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()


def _exchange(
    process: subprocess.Popen[bytes],
    plans: Sequence[RangePlan],
    on_outcome: Callable[[RangeOutcome], None],
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump(list(plans), process.stdin)
    process.stdin.close()
    for _ in plans:
        on_outcome(pickle.load(process.stdout))  # noqa: S301 - written by our own child


def main() -> None:
    """The process: plans come by standard input, each outcome goes by standard output at once."""
    os.nice(_NICE)
    for number, plan in enumerate(pickle.load(sys.stdin.buffer)):  # noqa: S301 - written by our own parent
        pickle.dump(outcome_of(number, plan), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
