"""The scripts in `bin/`, with the names of Kafka's own, which images and units call."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.waiting import await_value

BIN = Path(__file__).parents[3] / "bin"
PATH = os.pathsep.join(
    folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "sparkmirror").exists()
)
"""The scripts also work where sparkmirror is installed, or an environment with it is active."""
ECHO = '#!/bin/sh\necho "$0|$(printf "%s|" "$@")"\nexit 7\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """With the scripts, and a sparkmirror that says how it was called."""
    shutil.copytree(BIN, tmp_path / "bin")
    _echo(tmp_path / ".venv" / "bin")
    return tmp_path


def _echo(folder: Path) -> Path:
    folder.mkdir(parents=True)
    command = folder / "sparkmirror"
    command.write_text(ECHO)
    command.chmod(0o755)
    return command


def called(script: Path, *words: str, **environment: str) -> tuple[int, str]:
    """Return the script's exit code and output."""
    done = subprocess.run(
        [str(script), *words],
        env={"PATH": PATH, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (
            ["connect-mirror-maker.sh", "mm2.properties", "--clusters", "A", "B"],
            {},
            "run|mm2.properties|--clusters|A|B|",
        ),
        (["connect-distributed.sh", "a file.properties"], {}, "worker|a file.properties|"),
        (["mm2.sh", "deploy", "source-0"], {}, "deploy|--dir|mm2|source-0|"),
        (["mm2.sh", "undeploy", "source-0"], {"CONF_FOLDER": "x"}, "undeploy|source-0|"),
        (
            ["mm2.sh", "redeploy", "source-0", "--no-wait"],
            {"CONF_FOLDER": "my files", "TARGET_HOST": "connect:8083"},
            "redeploy|--dir|my files|--url|connect:8083|source-0|--no-wait|",
        ),
        (
            ["mm2.sh", "status", "source-0"],
            {"TARGET_HOST": "connect:8083"},
            "status|--url|connect:8083|source-0|",
        ),
    ],
)
def test_a_script_calls_sparkmirror_with_the_same_arguments(
    words: list[str], environment: Mapping[str, str], expected: str, checkout: Path
) -> None:
    command = checkout / ".venv" / "bin" / "sparkmirror"
    assert called(checkout / "bin" / words[0], *words[1:], **environment) == (7, f"{command}|{expected}\n")


@pytest.mark.parametrize("name", ["connect-mirror-maker.sh", "connect-distributed.sh"])
def test_a_script_without_arguments_prints_its_usage(name: str, checkout: Path) -> None:
    code, said = called(checkout / "bin" / name)
    assert code == 1
    assert said.startswith(f"USAGE: {checkout}/bin/{name} [-daemon] ")


def test_mm2_sh_prints_its_usage(checkout: Path) -> None:
    usage = "usage: mm2.sh [deploy | undeploy | redeploy | status] cluster\n"
    assert called(checkout / "bin" / "mm2.sh") == (2, usage)
    assert called(checkout / "bin" / "mm2.sh", "explode", "source-0") == (2, usage)


def test_a_daemon_runs_in_the_background_and_logs_where_kafkas_does(checkout: Path) -> None:
    said = checkout / "logs" / "mirrorMaker.out"
    assert called(checkout / "bin" / "connect-mirror-maker.sh", "-daemon", "mm2.properties") == (0, "")
    await_value(lambda: said.exists() and said.read_text().endswith("|run|mm2.properties|\n"), 30, str)
    logs = checkout / "elsewhere"
    script = checkout / "bin" / "connect-distributed.sh"
    assert called(script, "-daemon", "w.properties", LOG_DIR=str(logs)) == (0, "")
    said = logs / "connectDistributed.out"
    await_value(lambda: said.exists() and said.read_text().endswith("|worker|w.properties|\n"), 30, str)


def test_a_link_to_a_script_works_and_without_a_checkout_path_is_searched(
    checkout: Path, tmp_path: Path
) -> None:
    link = tmp_path / "somewhere" / "mm2.sh"
    link.parent.mkdir()
    link.symlink_to(checkout / "bin" / "mm2.sh")
    shutil.rmtree(checkout / ".venv")
    code, said = called(link, "status", "a")
    assert code == 127
    assert "is neither in" in said
    command = _echo(tmp_path / "on path")
    path = f"{command.parent}:{PATH}"
    assert called(link, "status", "a", PATH=path) == (7, f"{command}|status|a|\n")
