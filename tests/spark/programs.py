"""Programs that tests start in a Python of their own: their environment, and their end."""

import os
import sys
from pathlib import Path
from typing import Final

from sparkmirror.clusters.processes import Process
from tests.support.waiting import await_value

PYTHON_PATH: Final = os.pathsep.join([str(Path.cwd()), *sys.path])
"""Finds what this Python finds, and the tests."""


def await_end(process: Process, timeout_s: float, log: Path) -> None:
    await_value(lambda: not process.is_alive(), timeout_s, log.read_text)
