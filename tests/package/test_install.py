"""The wheel, installed by pip into empty environments, in a folder that is no checkout."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.support.in_terminal import shown_in_a_terminal
from tests.support.installations import Installation, environment, wheel
from tests.support.waiting import await_value, patience

MB: Final = 1_000_000
SPARK: Final = "sparkmirror[spark]"
NEEDS_SPARK: Final = f"this needs Spark, and there is no pyspark, pyarrow, pandas: pip install '{SPARK}'"
RECORDS: Final = 500
_URL: Final = re.compile(r"http://\S+/ui/")
FILE: Final = """\
clusters = west, east
west.bootstrap.servers = {west}
east.bootstrap.servers = {east}
west->east.enabled = true
west->east.topics = orders
replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
"""


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel without extras."""
    installation = Installation(tmp_path_factory.mktemp("asking"), sys.executable)
    installation.pip_install(wheel())
    return installation


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel, and then what the error of a command without Spark says."""
    installation = Installation(tmp_path_factory.mktemp("copying"), sys.executable)
    installation.uv_install(wheel())
    installation.pip_install(SPARK, "sparkmirror[top]")
    return installation


@pytest.fixture(scope="module")
def file(copying: Installation) -> Iterator[Path]:
    """The mm2.properties of two clusters that the installed program has started; one has records."""
    names = {alias: f"{alias}-{uuid4().hex[:8]}" for alias in ("west", "east")}
    try:
        _done(copying, "clusters", "up", *names.values())
        shown = json.loads(copying.sparkmirror("clusters", "status", "-o", "json").out)
        servers = {cluster["name"]: cluster["bootstrap_servers"] for cluster in shown}
        written = copying.work / "mm2.properties"
        written.write_text(FILE.format(**{alias: servers[name] for alias, name in names.items()}))
        _done(
            copying,
            "clusters",
            "tool",
            names["west"],
            "kafka-topics",
            "--create",
            "--topic",
            "orders",
            "--partitions",
            "3",
        )
        producer = [
            str(copying.program),
            "clusters",
            "tool",
            names["west"],
            "kafka-console-producer",
            "--topic",
            "orders",
        ]
        records = "".join(f"order {number}\n" for number in range(RECORDS))
        subprocess.run(producer, input=records, text=True, cwd=copying.work, env=environment(), check=True)
        yield written
    finally:
        copying.sparkmirror("clusters", "down", *names.values(), "--delete-data")


def _done(installation: Installation, *words: object) -> str:
    ended = installation.sparkmirror(*words)
    assert ended.code == 0, ended
    return ended.out


@contextmanager
def running(installation: Installation, *words: object) -> Iterator[Path]:
    """Run a command until the block ends, then stop it in order. The value is its log."""
    log = installation.work / f"{words[0]}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [installation.program, *map(str, words)],
            cwd=installation.work,
            env=environment(),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield log
        process.send_signal(signal.SIGTERM)
        assert process.wait(60 * patience()) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def test_what_only_asks_is_small(asking: Installation) -> None:
    assert asking.installed_bytes() < 110 * MB
    assert asking.run(asking.python, "-c", "import pyspark").code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_needs_no_spark(shell: str, asking: Installation) -> None:
    assert "clusters" in _done(asking, "completion", shell)


def test_what_copies_says_in_one_line_what_to_install(asking: Installation) -> None:
    (asking.work / "mm2.properties").write_text(FILE.format(west="127.0.0.1:1", east="127.0.0.1:1"))
    for words in (("run", "mm2.properties"), ("prepare",), ("demo",)):
        ended = asking.sparkmirror(*words)
        assert ended.code == 2, ended
        assert ended.lines[-1].endswith(NEEDS_SPARK), ended
        assert "Traceback" not in ended.err


def test_an_archive_for_executors_needs_what_they_need(asking: Installation) -> None:
    ended = asking.sparkmirror("archive", "packages.tar.gz")
    assert (ended.code, len(ended.lines)) == (2, 1), ended
    assert ended.lines[0].endswith("and executors need it: pip install 'sparkmirror[spark]'")
    assert not (asking.work / "packages.tar.gz").exists()


def test_jars_that_ivy_has_to_fetch_name_the_extra(asking: Installation, tmp_path: Path) -> None:
    ended = asking.sparkmirror("clusters", "up", "none", SPARKMIRROR_CACHE=str(tmp_path))
    assert (ended.code, len(ended.lines)) == (2, 1), ended
    assert ended.lines[0].endswith("PySpark's Ivy: pip install 'sparkmirror[spark]'")


@pytest.fixture(scope="module")
def running_mirror(copying: Installation, file: Path) -> Iterator[Path]:
    """The same file, which is planned and then runs until the last test ends."""
    assert "create 1 topic on east" in _done(copying, "plan", file)
    with running(copying, "run", file, "--http", "127.0.0.1:0") as log:
        await_value(lambda: "started in" in log.read_text(), 90, log.read_text)
        yield file


def test_a_mirror_is_run_and_verified(copying: Installation, running_mirror: Path) -> None:
    _done(copying, "lag", running_mirror, "--wait", "--timeout", 120)
    assert f"{RECORDS}" in _done(copying, "verify", running_mirror)
    assert b"caught up" in shown_in_a_terminal(
        ["top", str(running_mirror)], b"orders", program=copying.program
    )


def test_a_mirror_is_looked_at_without_spark(asking: Installation, running_mirror: Path) -> None:
    for command in ("status", "lag", "plan", "events"):
        _done(asking, command, running_mirror)
    with running(asking, "watch", running_mirror, "--http", "127.0.0.1:0") as log:
        url = await_value(lambda: _URL.search(log.read_text()), 60, log.read_text)
        with urllib.request.urlopen(url[0]) as page:
            assert "west" in page.read().decode()


def test_programs_get_translated_offsets_without_spark(asking: Installation, running_mirror: Path) -> None:
    servers = dict(line.split(" = ") for line in running_mirror.read_text().splitlines() if " = " in line)
    program = f"""
from sparkmirror import MirrorClient
with MirrorClient({{"bootstrap.servers": "{servers["east.bootstrap.servers"]}"}}) as client:
    print(sorted(client.upstream_clusters()))
"""
    ended = asking.run(asking.python, "-c", program)
    assert (ended.code, ended.out) == (0, "['west']\n"), ended
