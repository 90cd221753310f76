from pathlib import Path

import pytest

from sparkmirror.java.folders import cache_folder


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
