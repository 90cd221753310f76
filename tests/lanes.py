"""Runs the tests in two processes, `python -m tests.lanes`: each waits for its own brokers half of the time.

One is shown as it goes, the other when both have ended. Arguments are pytest's, for both.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SHOWN: Final = ("tests/faults", "tests/system")
KEPT_BACK: Final = ("tests/contract", "tests/spark", "tests/unit")
_NO_TESTS: Final = 5
"""pytest's exit code where the arguments leave a lane nothing to do."""
_ROOT: Final = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> int:
    """The exit code of the lane that failed, 0 if none did. Ctrl-C reaches both: they end their brokers."""
    pytest = [sys.executable, "-m", "pytest", *arguments]
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen([*pytest, *KEPT_BACK], cwd=_ROOT, stdout=output, stderr=output) as kept_back,
        subprocess.Popen([*pytest, *SHOWN], cwd=_ROOT) as shown,
    ):
        codes = [0 if lane.wait() == _NO_TESTS else lane.returncode for lane in (shown, kept_back)]
        output.seek(0)
        sys.stdout.write(output.read().decode(errors="replace"))
    if codes[0]:
        sys.stdout.write(f"{' '.join(SHOWN)}: failed, see above\n")
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
