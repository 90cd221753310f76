"""The folder of logs."""

import stat
from pathlib import Path

import pytest

from sparkmirror.spark.log_files import log_directory


def test_other_users_can_not_read_the_folder_of_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert log_directory() == tmp_path / "sparkmirror"
    assert stat.S_IMODE((tmp_path / "sparkmirror").stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    other = log_directory()
    assert other.parent == tmp_path
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
