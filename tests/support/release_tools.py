"""Finds the programs of `requirements-tools.lock`, which `make tools` installs."""

from pathlib import Path
from typing import Final

import pytest

TOOLS: Final = Path(__file__).parents[2] / "build" / "tools" / "bin"


def release_tool(name: str) -> str:
    """Return the path of a program; without it the test fails, as `make package-check` installs it."""
    program = TOOLS / name
    if not program.exists():
        pytest.fail(f"there is no {program}: make tools")
    return str(program)
