"""`sparkmirror archive`: output and errors."""

from pathlib import Path

import pytest

from sparkmirror.cli import archive
from sparkmirror.cli.main import main
from sparkmirror.spark.executor_archive import ArchiveContents, Packed, python_version


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Packs one file, and notes what was asked for beside what is always packed."""
    asked: list[list[str]] = []
    file = tmp_path / "file"
    file.touch()

    def contents(more: list[str]) -> ArchiveContents:
        asked.append(more)
        return ArchiveContents([Packed(file, "a/file")], ["a 1.0", "b 2.0"])

    monkeypatch.setattr(archive, "archive_contents", contents)
    return asked


def test_it_prints_its_python_and_its_contents(
    tmp_path: Path, small: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.tar.gz"
    assert main(["archive", str(out), "--with", "pyspark", "--with", "gssapi"]) == 0
    assert out.is_file()
    assert small == [["pyspark", "gssapi"]]
    said = capsys.readouterr().err
    assert f"{out}: 0 MB for Python {python_version()} (modules *.cpython-" in said
    assert "Contents: sparkmirror, a 1.0, b 2.0" in said


def test_a_name_that_spark_would_not_unpack_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["archive", "out.tar"])
    assert ended.value.code == 2
    assert "out.tar must end in .tar.gz: Spark unpacks it by its name" in capsys.readouterr().err


def test_a_missing_distribution_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["archive", str(tmp_path / "out.tar.gz"), "--with", "no-such-package"]) == 1
    assert "no-such-package is not installed for" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_said(
    tmp_path: Path, small: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["archive", str(tmp_path / "missing" / "out.tar.gz")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
