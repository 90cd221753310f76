"""`sparkmirror archive`: output and errors."""

from collections.abc import Collection
from pathlib import Path

import pytest

from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.commands import archive
from sparkmirror.cli.main import main
from sparkmirror.spark.executor_archive import ArchiveContents, Packed, python_version


def test_it_prints_its_python_and_its_contents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Collection[str]] = []
    file = tmp_path / "file"
    file.touch()

    def contents(more: Collection[str]) -> ArchiveContents:
        asked.append(more)
        return ArchiveContents([Packed(file, "a/file")], ["a 1.0", "b 2.0"])

    out = tmp_path / "out.tar.gz"
    arguments = build_parser().parse_args(["archive", str(out), "--with", "pyspark", "--with", "gssapi"])
    assert archive.run(arguments, contents) == 0
    assert out.is_file()
    assert asked == [["pyspark", "gssapi"]]
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


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["archive", str(tmp_path / "missing" / "out.tar.gz")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
