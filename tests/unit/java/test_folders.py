import os
import stat
from pathlib import Path

import pytest

from sparkmirror.java.folders import cache_folder, writable_cache_folder


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"HOME": "/home/me"}, "linux", "/home/me/.cache/sparkmirror"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}, "linux", "/fast/sparkmirror"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "linux", "/home/me/.cache/sparkmirror"),
        ({"HOME": "/Users/me", "XDG_CACHE_HOME": "/fast"}, "darwin", "/Users/me/Library/Caches/sparkmirror"),
        ({"HOME": "/home/me", "SPARKMIRROR_CACHE": "/mine"}, "linux", "/mine"),
        ({"HOME": "/home/me", "SPARKMIRROR_CACHE": "/mine"}, "darwin", "/mine"),
    ],
)
def test_cache_folder_follows_the_platform(environ: dict[str, str], platform: str, expected: str) -> None:
    assert cache_folder(environ, platform) == Path(expected)


def test_where_the_cache_can_not_be_written_a_folder_of_the_user_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = tmp_path / "mine"
    assert writable_cache_folder({"SPARKMIRROR_CACHE": str(mine)}) == mine
    assert mine.is_dir()
    (tmp_path / "file").touch()
    instead = writable_cache_folder({"SPARKMIRROR_CACHE": str(tmp_path / "file" / "cache")})
    assert instead == tmp_path / f"sparkmirror-{os.getuid()}"
    assert stat.S_IMODE(instead.stat().st_mode) == 0o700
    assert writable_cache_folder({"SPARKMIRROR_CACHE": str(tmp_path / "file" / "cache")}) == instead


def test_a_folder_that_others_may_have_prepared_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").touch()
    (tmp_path / "theirs").mkdir()
    prepared = tmp_path / f"sparkmirror-{os.getuid()}"
    prepared.symlink_to(tmp_path / "theirs")
    taken = writable_cache_folder({"SPARKMIRROR_CACHE": str(tmp_path / "file" / "cache")})
    assert taken not in (prepared, tmp_path / "theirs")
    prepared.unlink()
    prepared.mkdir()
    prepared.chmod(0o777)
    assert writable_cache_folder({"SPARKMIRROR_CACHE": str(tmp_path / "file" / "cache")}) != prepared
