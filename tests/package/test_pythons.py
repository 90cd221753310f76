"""The wheel on every Python that it names, and with the oldest and newest dependencies that it allows."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from release.artefacts import ROOT
from tests.support.installations import Installation, environment, interpreter, wheel
from tests.support.release_tools import release_tool

OLDEST: Final = "3.11"
TRIED: Final = ("3.12", "3.13")
RESOLVED: Final = "3.14"
"""The newest: where there is no such interpreter, its dependencies at least resolve, and have wheels."""

DEMO: Final = ("demo", "--rate", "500", "--duration", "3", "--partitions", "2")
EDGES: Final = (
    "tests/unit/batches",
    "tests/unit/cli/commands",
    "tests/unit/cli/test_terminal.py",
    "tests/unit/copy/task",
    "tests/unit/metrics",
    "tests/unit/security",
    "tests/unit/view",
    "tests/rest/test_mirror_pages.py",
)
"""Tests next to numpy, cramjam, rich, shtab, pyarrow, cryptography, prometheus-client, jinja2."""


@pytest.mark.parametrize("version", [*TRIED, RESOLVED])
def test_the_newest_dependencies_mirror_and_verify(version: str, tmp_path: Path) -> None:
    installation = Installation(tmp_path, interpreter(version))
    installation.uv_install(wheel("spark", "top"))
    _mirrors(installation)


def test_the_oldest_dependencies_mirror_and_pass_the_tests_beside_them(tmp_path: Path) -> None:
    installation = Installation(tmp_path, interpreter(OLDEST))
    oldest = _resolved(OLDEST, "--resolution", "lowest-direct")
    assert (oldest["numpy"], oldest["pyarrow"]) == ("2.0.0", "18.0.0")
    (tmp_path / "oldest.txt").write_text("".join(f"{name}=={version}\n" for name, version in oldest.items()))
    installation.uv_install("--constraints", str(tmp_path / "oldest.txt"), wheel("spark", "top", "aws"))
    versions = (
        "import numpy, pandas, pyarrow; print(numpy.__version__, pandas.__version__, pyarrow.__version__)"
    )
    shown = installation.run(installation.python, "-c", versions)
    assert shown.out.split() == [oldest["numpy"], oldest["pandas"], oldest["pyarrow"]]
    _mirrors(installation)
    installation.uv_install("hypothesis", "psutil", "pytest==9.1.1", "pytest-timeout", "pytest-xdist")
    tests = [str(installation.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *EDGES]
    subprocess.run(tests, cwd=ROOT, env=environment(), check=True)


def _mirrors(installation: Installation) -> None:
    """Run two clusters, a mirror, and a comparison of every record: 0 if both are equal."""
    ended = installation.sparkmirror(*DEMO)
    assert ended.code == 0, ended


def test_dependencies_of_the_newest_python_resolve_and_have_wheels() -> None:
    """PySpark is one source archive for all versions."""
    found = _resolved(RESOLVED, "--only-binary", ":all:", "--no-binary", "pyspark")
    assert found.keys() >= {"numpy", "pyarrow", "pandas", "pyspark", "textual", "botocore"}


def _resolved(version: str, *options: str) -> dict[str, str]:
    """The version of each package that pyproject.toml leads to, with all extras that need no compiler."""
    command = [release_tool("uv"), "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    extras = [word for extra in ("spark", "top", "aws") for word in ("--extra", extra)]
    wanted = ["--python-version", version, *extras, *options, "pyproject.toml"]
    ran = subprocess.run([*command, *wanted], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(line.split(" ;")[0].split("==") for line in ran.stdout.splitlines())


@pytest.mark.parametrize("version", ["3.10", "3.9"])
def test_an_older_python_is_refused_by_pip_in_one_line(version: str, tmp_path: Path) -> None:
    installation = Installation(tmp_path, interpreter(version))
    ended = installation.run(installation.python, "-m", "pip", "install", "--no-deps", wheel())
    assert ended.code == 1
    assert any("requires a different Python: " + version in line for line in ended.lines), ended


@pytest.mark.parametrize("version", ["3.10"])
def test_an_older_python_is_refused_by_make_in_one_line(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    makefile = ROOT / "Makefile"
    (tmp_path / "requirements.lock").touch()
    (tmp_path / "pyproject.toml").touch()
    made = ["make", "--silent", "-f", str(makefile), f"PYTHON={python}", "setup"]
    ran = subprocess.run(made, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "sparkmirror needs Python 3.11 or newer" in ran.stderr.splitlines()[0], ran
    assert not (tmp_path / ".venv").exists()
