"""Contents of the executor archive, and the changes after which it is packed again."""

import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, DistributionFinder, PackagePath, PathDistribution
from pathlib import Path

import pytest

import sparkmirror
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.spark.executor_archive import (
    ArchiveContents,
    Packed,
    archive_contents,
    cached_archive,
    write_archive,
)

_EVERY_NAME = DistributionFinder.Context()


def test_it_holds_what_runs_there_and_nothing_that_does_not() -> None:
    contents = archive_contents()
    names = [packed.name for packed in contents.files]
    assert len(set(names)) == len(names)
    assert {"sparkmirror/copy/task/worker_daemon.py", "kafka/__init__.py", "numpy/__init__.py"} < set(names)
    assert not [name for name in names if "/tests/" in name or "__pycache__" in name or ".." in name]
    assert not [name for name in names if name.startswith(("pandas/", "pyspark/"))]
    assert [each.split()[0] for each in contents.distributions] == [
        "PyJWT",
        "cffi",
        "cramjam",
        "crc32c",
        "cryptography",
        "javaproperties",
        "kafka-python",
        "numpy",
        "pyarrow",
        "pycparser",
        "regex",
        "typing_extensions",
        "urllib3",
    ]


def test_the_archive_does_not_name_its_packer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    contents = ArchiveContents([Packed(tmp_path / "file", "package/file")], [])
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    write_archive(contents, first)
    write_archive(contents, second)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        entries = archive.getmembers()
    assert [(entry.name, entry.mode) for entry in entries] == [
        ("bin/python", 0o755),
        ("packages/package/file", 0o644),
    ]
    assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {(0, 0, "", "")}


def test_more_can_be_packed(tmp_path: Path) -> None:
    names = [packed.name for packed in archive_contents(["pyspark"]).files]
    assert "pyspark/worker.py" in names
    assert "py4j/__init__.py" in names, "what it requires"
    assert not [name for name in names if name.endswith(".jar")]


def test_a_missing_distribution_is_named() -> None:
    with pytest.raises(SparkmirrorError, match=r"no-such-package is not installed for .*python"):
        archive_contents(["no-such-package"])


class _OneDistribution(DistributionFinder):
    def __init__(self, name: str, found: Distribution) -> None:
        self._name = name
        self._found = found

    def find_spec(self, *_: object) -> None:
        """It has no modules."""

    def find_distributions(self, context: DistributionFinder.Context = _EVERY_NAME) -> Iterator[Distribution]:
        if context.name == self._name:
            yield self._found


@contextmanager
def installed(name: str, found: Distribution) -> Iterator[None]:
    """Install a distribution for `importlib.metadata`."""
    finder = _OneDistribution(name, found)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def test_a_listed_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """Old pips unpacked packages without a list of files; Python 3.11 takes the source's list instead."""

    class Unpacked(PathDistribution):
        @property
        def files(self) -> list[PackagePath]:
            return [PackagePath("deps/jars/some.jar")]

    (tmp_path / "unpacked.egg-info").mkdir()
    (tmp_path / "unpacked.egg-info/PKG-INFO").write_text("Name: unpacked\nVersion: 1.0\n")
    found = Unpacked(tmp_path / "unpacked.egg-info")
    refusal = r"unpacked 1\.0 lists deps/jars/some\.jar, which is not there"
    with installed("unpacked", found), pytest.raises(SparkmirrorError, match=refusal):
        archive_contents(["unpacked"])


def test_it_is_made_once_and_again_when_the_package_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    name = "sparkmirror/__init__.py"
    contents = ArchiveContents([Packed(Path(sparkmirror.__file__), name)], [])

    def archive() -> Path:
        return cached_archive(contents, lambda: writes.append("written"))

    monkeypatch.setenv("SPARKMIRROR_CACHE", str(tmp_path))
    first, second = archive(), archive()
    assert first == second
    assert first.is_relative_to(tmp_path)
    assert writes == ["written"]
    with tarfile.open(first) as made:
        assert made.getnames() == ["bin/python", f"packages/{name}"]
    os.utime(first, (0, 0))
    assert archive() == first
    assert writes == ["written", "written"]
    assert first.stat().st_mtime > 0
