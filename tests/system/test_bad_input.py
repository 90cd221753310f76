"""Bad input ends with one message that names file, key and value, and MM2's exit code; no JVM is started."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from sparkmirror.cli.main import main
from tests.support.mirror import COMMAND

GOOD = """\
clusters = A, B
A.bootstrap.servers = localhost:1
B.bootstrap.servers = localhost:2
A->B.enabled = true
"""
WRONG_FILES = {
    "number": (
        GOOD + "tasks.max = many\n",
        ["tasks.max", "many", "Not a number of type INT"],
    ),
    "regex": (GOOD + "A->B.topics = ok, [a-\n", ["topics", "[a-"]),
    "no flow": (
        "clusters = A, B\nemit.heartbeats.enabled = false\n",
        ["No source->target replication flows"],
    ),
    "no clusters": ("A->B.enabled = true\n", ["clusters"]),
    "no bootstrap servers": (GOOD.replace("B.bootstrap", "C.bootstrap"), ["B.bootstrap.servers", "A->B"]),
    "port": (GOOD.replace("localhost:2", "localhost:70000"), ["bootstrap.servers", "localhost:70000"]),
    "policy class": (
        GOOD + "replication.policy.class = com.example.MyPolicy\n",
        ["replication.policy.class", "com.example.MyPolicy"],
    ),
    "client setting": (
        GOOD + "A.consumer.auto.offset.reset = newest\n",
        ["auto.offset.reset", "newest"],
    ),
    "not yet supported": (
        GOOD + "A.security.protocol = SASL_SSL\nA.sasl.mechanism = DIGEST-MD5\n",
        ["sasl.mechanism", "DIGEST-MD5"],
    ),
}


class Ended(NamedTuple):
    code: int | str | None
    stdout: str
    stderr: str


def arguments_of(folder: Path, arguments: Sequence[str]) -> list[str]:
    return ["run", *arguments, "--log-file", str(folder / "spark.log")]


def run(folder: Path, *arguments: str) -> Ended:
    """Run the command in a process of its own."""
    command = [COMMAND, *arguments_of(folder, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def run_here(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> Ended:
    """Run the command in this process, which saves a second."""
    try:
        code: int | str | None = main(arguments_of(folder, arguments))
    except SystemExit as end:
        code = end.code
    return Ended(code, *capsys.readouterr())


def assert_refused(result: Ended, folder: Path, code: int, words: Sequence[str]) -> None:
    assert result.code == code, result.stderr
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "spark.log").exists(), "a JVM was started"


@pytest.mark.parametrize("what", WRONG_FILES)
def test_invalid_file_is_refused_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    text, words = WRONG_FILES[what]
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    result = run_here(capsys, tmp_path, str(file))
    assert_refused(result, tmp_path, 2, [str(file), *words])
    assert result.stderr.count("\n") == 1, result.stderr


def test_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.properties")
    assert_refused(run(tmp_path, missing), tmp_path, 2, [missing])


def test_run_without_a_file_prints_the_usage(tmp_path: Path) -> None:
    assert_refused(run(tmp_path), tmp_path, 255, ["usage:", "sparkmirror run: "])


def test_unknown_alias_in_clusters_option_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD)
    result = run_here(capsys, tmp_path, str(file), "--clusters", "C")
    assert_refused(result, tmp_path, 2, [str(file), "--clusters", "C"])


@pytest.mark.parametrize("arguments", [("a.properties", "b.properties"), ("a.properties", "--nonsense")])
def test_bad_arguments_print_the_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    result = run_here(capsys, tmp_path, *arguments)
    assert_refused(result, tmp_path, 255, ["usage:", "sparkmirror run: "])


def test_error_does_not_show_secrets(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD + "A.ssl.keystore.password = hunter2\nA.security.protocol = SSL\ntasks.max = x\n")
    result = run(tmp_path, str(file))
    assert result.code == 2
    assert "hunter2" not in result.stderr
