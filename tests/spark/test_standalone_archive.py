"""The executor archive, unpacked and run with an interpreter that has no packages."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

import pyspark
import pytest

from sparkmirror.spark.executor_archive import FOLDER, LAUNCHER, NO_PYTHON, PYTHON_VARIABLE
from sparkmirror.spark.shipping import own_archive

SPARKS_OWN: Final = sorted(map(str, Path(pyspark.__file__).parent.glob("python/lib/*.zip")))
IMPORTED_BY_TASKS: Final = (
    "sparkmirror.copy.task.worker_daemon",
    "sparkmirror.copy.copy_loop",
    "sparkmirror.verify.spark_job",
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An executor's working directory."""
    folder = tmp_path_factory.mktemp("executor")
    (folder / FOLDER).mkdir()
    # as Spark does
    subprocess.run(["tar", "-xzf", str(own_archive()), "-C", str(folder / FOLDER)], check=True)
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def launched(folder: Path, python: Path | str, program: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        PYTHON_VARIABLE: str(python),
        "PYTHONPATH": os.pathsep.join(SPARKS_OWN),
        "PATH": "/usr/bin:/bin",
    }
    command = [LAUNCHER, "-c", program]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_bare_interpreter_imports_all_that_tasks_import(unpacked: Path, bare: Path) -> None:
    program = f"import sys, {', '.join(IMPORTED_BY_TASKS)}; print(sys.executable, *sys.modules)"
    done = launched(unpacked, bare, program)
    assert done.returncode == 0, done.stderr
    executable, *modules = done.stdout.split()
    assert executable == str(bare)
    assert "pandas" not in modules


def test_packages_of_the_archive_precede_installed_ones(unpacked: Path) -> None:
    program = "import numpy, sparkmirror; print(numpy.__file__, sparkmirror.__file__)"
    done = launched(unpacked, sys.executable, program)
    assert all(Path(file).is_relative_to(unpacked) for file in done.stdout.split()), done


def test_launcher_exits_with_an_error_without_a_suitable_python(unpacked: Path, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    done = launched(unpacked, other, "")
    assert done.returncode == NO_PYTHON
    assert f"no Python 3.{sys.version_info[1]} with modules .cpython-" in done.stderr
    assert str(other) in done.stderr
