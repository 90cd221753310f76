"""Bad input: one clear message that names file, key and value, MM2's exit code, and nothing started."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.system.mirror import COMMAND

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
    "not yet supported": (GOOD + "A.security.protocol = SSL\n", ["security.protocol", "SSL"]),
}


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [COMMAND, "run", *arguments, "--log-file", str(folder / "spark.log")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def assert_refused(
    result: "subprocess.CompletedProcess[str]", folder: Path, code: int, words: Sequence[str]
) -> None:
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "spark.log").exists(), "a JVM was started"


@pytest.mark.parametrize("what", WRONG_FILES)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, what: str) -> None:
    text, words = WRONG_FILES[what]
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    result = run(tmp_path, str(file))
    assert_refused(result, tmp_path, 2, [str(file), *words])
    assert result.stderr.count("\n") == 1, result.stderr


def test_a_missing_file(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.properties")
    assert_refused(run(tmp_path, missing), tmp_path, 2, [missing])


def test_an_unknown_alias(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD)
    assert_refused(run(tmp_path, str(file), "--clusters", "C"), tmp_path, 2, [str(file), "--clusters", "C"])


@pytest.mark.parametrize("arguments", [(), ("a.properties", "b.properties"), ("a.properties", "--nonsense")])
def test_bad_arguments(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert_refused(run(tmp_path, *arguments), tmp_path, 255, ["usage:", "sparkmirror run: "])


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD + "A.ssl.keystore.password = hunter2\nA.security.protocol = SSL\ntasks.max = x\n")
    result = run(tmp_path, str(file))
    assert result.returncode == 2
    assert "hunter2" not in result.stderr
