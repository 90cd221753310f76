"""The environment of programs that tests start in a Python of their own."""

import os
import sys
from pathlib import Path
from typing import Final

PYTHON_PATH: Final = os.pathsep.join([str(Path.cwd()), *sys.path])
"""Finds what this Python finds, and the tests."""
