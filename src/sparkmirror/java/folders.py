"""Locates the cache folder of downloads and named clusters, and locks files in it between processes."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """SPARKMIRROR_CACHE, else `sparkmirror` in XDG_CACHE_HOME, ~/Library/Caches (macOS) or ~/.cache."""
    if override := environ.get("SPARKMIRROR_CACHE"):
        return Path(override).expanduser().absolute()
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    if platform == "darwin":
        return home / "Library" / "Caches" / "sparkmirror"
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (xdg if xdg.is_absolute() else home / ".cache") / "sparkmirror"


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file; yields its descriptor. `on_wait` is called once if another process holds it.

    The system releases it when the last process that inherited the descriptor has ended.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
