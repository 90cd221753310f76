"""The wheel and the sdist: equal bytes from equal sources, and what a package index asks for."""

import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from release.artefacts import CHECKSUMS, DIST, ROOT, build_distributions, checksums, pack
from tests.support.release_tools import release_tool


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build_distributions(ROOT, folder)
    return folder


def test_two_builds_have_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """The second from another folder, whose files have other times and modes."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(
        listed, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines():
        copy = tmp_path / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
        copy.chmod((ROOT / name).stat().st_mode & 0o700)
    build_distributions(tmp_path / "source", tmp_path / "dist")
    assert {file.name: file.read_bytes() for file in built.iterdir()} == {
        file.name: file.read_bytes() for file in (tmp_path / "dist").iterdir()
    }


def test_the_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build_distributions(source, tmp_path / "dist")
    (wheel,) = built.glob("*.whl")
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


def test_an_index_would_take_them(built: Path) -> None:
    subprocess.run([release_tool("twine"), "check", "--strict", *built.iterdir()], check=True)


def test_the_wheel_has_the_licences_of_what_it_contains(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        files = set(wheel.namelist())
    licences = {file.partition("/licenses/")[2] for file in files if ".dist-info/licenses/" in file}
    static = "src/sparkmirror/ui/static"
    assert licences == {"LICENSE", "NOTICE", f"{static}/htmx.LICENSE", f"{static}/uPlot.LICENSE"}


def test_the_wheel_has_every_file_of_the_packages(built: Path) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"]
    sources = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == {name.removeprefix("src/") for name in sources}


def test_the_sdist_is_a_source_tree_without_how_it_is_run_elsewhere(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.split("/")[1] for name in sdist.getnames()}
    assert names >= {
        "src",
        "tests",
        "docs",
        "Makefile",
        "pyproject.toml",
        "requirements.lock",
        "LICENSE",
        "NOTICE",
    }
    assert not names & {".ci", ".git", "dist", "build", ".venv"}


def test_the_wheel_is_small(built: Path) -> None:
    assert next(built.glob("*.whl")).stat().st_size < 3_000_000


def test_everything_that_is_packed_twice_has_the_same_bytes(tmp_path: Path) -> None:
    contents = tmp_path / "site"
    contents.mkdir()
    (contents / "page.html").write_text("a page")
    first = _packed(contents, tmp_path / "first.tar.gz")
    os.utime(contents / "page.html", (1, 1))
    assert _packed(contents, tmp_path / "second.tar.gz") == first


def _packed(contents: Path, archive: Path) -> bytes:
    pack(archive, [contents], "site")
    return archive.read_bytes()


def test_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_bytes(b"one")
    (tmp_path / CHECKSUMS).write_text(checksums(tmp_path))
    subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS], cwd=tmp_path, check=True)


def test_the_bill_names_what_users_install_and_nothing_of_the_tests() -> None:
    """The one that `make package` has written."""
    (bill,) = DIST.glob("*.cdx.json")
    listed = {part["name"] for part in json.loads(bill.read_text())["components"]}
    assert {"kafka-python", "numpy", "pyspark", "botocore"} <= listed
    assert not {"pytest", "mypy", "hatchling"} & listed
