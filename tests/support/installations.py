"""Installs the wheel into environments of their own, for any Python that this machine has."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.release_tools import release_tool

_ROOT: Final = Path(__file__).parents[2]
_LEFT_OUT: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Return what was printed to standard error."""
        return self.err.strip().splitlines()


class Installation:
    """A virtual environment, whose programs run in a folder that is no checkout."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder = folder / "environment"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        subprocess.run([python, "-m", "venv", self._folder], check=True)

    @property
    def program(self) -> Path:
        return self._folder / "bin" / "sparkmirror"

    @property
    def python(self) -> Path:
        return self._folder / "bin" / "python"

    def pip_install(self, *what: str) -> None:
        """Install as users do, but for bytecode, which tests need of few modules only."""
        options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
        command = [str(self.python), "-m", "pip", "install", *options, *what]
        subprocess.run(command, cwd=self.work, env=environment(), check=True)

    def uv_install(self, *what: str) -> None:
        """Install faster: uv builds PySpark's wheel once, and links its files."""
        command = [release_tool("uv"), "pip", "install", "--quiet", "--python", str(self.python), *what]
        subprocess.run(command, cwd=self.work, env=environment(), check=True)

    def sparkmirror(self, *words: object, **variables: str) -> Ended:
        return self.run(self.program, *words, **variables)

    def run(self, program: Path, *words: object, **variables: str) -> Ended:
        ran = subprocess.run(
            [program, *map(str, words)],
            cwd=self.work,
            env={**environment(), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(ran.returncode, ran.stdout, ran.stderr)

    def installed_bytes(self) -> int:
        """Return the size of all packages without bytecode, and without pip, which the environment brings."""
        (packages,) = self._folder.glob("lib/python3.*/site-packages")
        left_out = ("__pycache__", "pip", "setuptools")
        files = (
            file for file in packages.rglob("*") if not set(file.relative_to(packages).parts) & set(left_out)
        )
        return sum(file.stat().st_size for file in files if file.is_file())


def environment() -> dict[str, str]:
    """Return this process's environment without what leads to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}


def wheel(*extras: str) -> str:
    """Return the wheel that `make package` has built, as pip takes it."""
    found = [*(_ROOT / "dist").glob("*.whl")]
    if len(found) != 1:
        pytest.fail(f"there is no single wheel in {_ROOT / 'dist'}: make package")
    return f"{found[0]}[{','.join(extras)}]" if extras else str(found[0])


def interpreter(version: str) -> str:
    """Return a Python of this minor version; without one the test is skipped, and says where it looked."""
    for candidate in _candidates(version):
        command = [candidate, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.stdout.strip() == version:
            return candidate
    pytest.skip(f"not run: no Python {version} in PATH, in pyenv's folder, or among uv's")


def _candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))
    listed = [release_tool("uv"), "python", "find", "--offline", "--no-project", version]
    found = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.strip()
    if found:
        yield found
