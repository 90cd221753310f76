"""Machines that lack something: it is named in one line, with the documented code; nothing is half done."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from release.artefacts import ROOT
from sparkmirror.cli.exit_codes import exit_codes
from sparkmirror.java.find_java import MODULES
from tests.support.installations import Ended
from tests.support.mirror import COMMAND

FILE: Final = """\
clusters = west, east
west.bootstrap.servers = 127.0.0.1:1
east.bootstrap.servers = 127.0.0.1:1
west->east.enabled = true
"""
DISK: Final = """
mount -t tmpfs -o size=256k disk "$1" || exit 99
{ready}
cd "$1"; shift
"$@"
code=$?
echo left behind: $(find . -type f ! -name full)
exit $code
"""
FULL: Final = DISK.format(ready='cat /dev/zero >"$1/full" 2>/dev/null')
READ_ONLY: Final = DISK.format(ready='mount -o remount,ro "$1"')


def sparkmirror(*words: object, **variables: str) -> Ended:
    return ended([COMMAND, *map(str, words)], variables)


def on_disk(script: str, folder: Path, *words: object) -> Ended:
    """Run a command in a folder on a disk of its own, which is its home, cache and temporary folder."""
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("not run: unshare makes no namespace of mounts here")
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(folder), COMMAND, *map(str, words)]
    return ended(command, {"HOME": str(folder), "TMPDIR": str(folder), "XDG_CACHE_HOME": ""})


def ended(command: list[str], variables: dict[str, str]) -> Ended:
    environment = {**os.environ, **variables}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return Ended(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "mm2.properties"
    written.write_text(FILE)
    return written


@pytest.mark.parametrize("command", ["run", "demo", "prepare", "clusters"])
def test_no_java(command: str, file: Path, tmp_path: Path) -> None:
    words: dict[str, list[object]] = {"run": [file], "clusters": ["up", "none"]}
    found = sparkmirror(command, *words.get(command, []), PATH="/nowhere", JAVA_HOME=str(tmp_path / "none"))
    assert found.code == 2, found
    assert "no Java" in exit_codes(command)[2]
    assert "sparkmirror needs Java 17 or newer: " in found.lines[-1]
    assert "does not run (No such file or directory)" in found.lines[-1]
    assert "Traceback" not in found.err


@pytest.fixture(scope="module")
def jlink() -> str:
    found = shutil.which("jlink")
    if found is None:
        pytest.skip("not run: there is no jlink in PATH")
    return found


def test_a_runtime_without_modules(jlink: str, file: Path, tmp_path: Path) -> None:
    runtime = _linked(jlink, tmp_path, "java.base", "java.sql")
    found = sparkmirror("run", file, PATH="/nowhere", JAVA_HOME=str(runtime))
    assert found.code == 2, found
    assert "without the modules java.desktop, java.management, " in found.lines[-1]


def test_the_named_modules_are_enough_for_brokers_and_spark(jlink: str, tmp_path: Path) -> None:
    runtime = _linked(jlink, tmp_path, *MODULES)
    demo = ("demo", "--rate", "500", "--duration", "3", "--partitions", "2")
    found = sparkmirror(*demo, JAVA_HOME=str(runtime))
    assert found.code == 0, found


def test_the_page_names_the_modules() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [name for name in MODULES if f"`{name}`" not in page] == []


def _linked(jlink: str, folder: Path, *modules: str) -> Path:
    runtime = folder / "runtime"
    subprocess.run([jlink, "--add-modules", ",".join(modules), "--output", runtime], check=True)
    return runtime


@pytest.mark.parametrize(
    "words", [("prepare",), ("clusters", "up", "none"), ("demo",)], ids=lambda words: words[0]
)
def test_a_home_that_is_read_only(words: tuple[str, ...], tmp_path: Path) -> None:
    found = on_disk(READ_ONLY, tmp_path, *words)
    assert found.code == 1, found
    assert found.lines[0].endswith("Read-only file system; SPARKMIRROR_CACHE names another folder"), found
    assert "Traceback" not in found.err


def test_a_full_disk_keeps_nothing_of_an_archive(tmp_path: Path) -> None:
    found = on_disk(FULL, tmp_path, "archive", "packages.tar.gz")
    assert (found.code, found.lines) == (
        1,
        ["sparkmirror: [Errno 28] No space left on device: 'packages.tar.gz'"],
    )
    assert found.out.strip() == "left behind:"


def test_a_full_disk_keeps_nothing_of_a_converted_file(file: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    found = on_disk(FULL, disk, "convert", file, "--to", "json", "-o", "out")
    assert found.code == 2
    assert "No space left on device: 'out/" in found.lines[-1]
    assert found.out.strip() == "left behind:"


def test_a_full_disk_keeps_nothing_of_a_cluster(tmp_path: Path) -> None:
    found = on_disk(FULL, tmp_path, "clusters", "up", "none")
    assert (found.code, len(found.lines)) == (1, 1), found
    assert "No space left on device" in found.err


def test_a_full_standard_output_is_an_error(file: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [COMMAND, "completion", "bash"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = "sparkmirror: the output can't be written: No space left on device\n"
    assert (ran.returncode, ran.stderr) == (1, said)
