"""Copy tasks against clusters in memory, with faults from seeds; see `tests.memory.drill`."""

import os
import subprocess
import sys
from typing import Final

RUNS: Final = 60


def test_runs_with_faults_end_with_every_record_once_and_in_order() -> None:
    """In processes of their own, where sets have one order, so that a seed that fails does so again."""
    command = [sys.executable, "-m", "tests.memory.drill", "--runs", str(RUNS), "--seed", "1"]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
