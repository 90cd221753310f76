"""Locates the cache folder of downloads and named clusters, and locks files in it between processes."""

import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkmirror.domain.errors import SparkmirrorError


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """SPARKMIRROR_CACHE, else `sparkmirror` in XDG_CACHE_HOME, ~/Library/Caches (macOS) or ~/.cache."""
    if override := environ.get("SPARKMIRROR_CACHE"):
        return Path(override).expanduser().absolute()
    home = Path(environ["HOME"]) if environ.get("HOME") else _home()
    if platform == "darwin":
        return home / "Library" / "Caches" / "sparkmirror"
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (xdg if xdg.is_absolute() else home / ".cache") / "sparkmirror"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a name
        return Path("/")


def writable_cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The cache folder, or one below the temporary folder where it can't be written, as in a container."""
    folder = cache_folder(environ)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return _temporary_folder()


def _temporary_folder() -> Path:
    """Return a folder of this user alone: no other user may have prepared what is found there."""
    folder = Path(tempfile.gettempdir()) / f"sparkmirror-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="sparkmirror-"))


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file; yields its descriptor. `on_wait` is called once if another process holds it.

    The system releases it when the last process that inherited the descriptor has ended.
    Raises SparkmirrorError for a folder that can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        why = f"{path.parent} can't be written: {error.strerror}"
        raise SparkmirrorError(f"{why}; SPARKMIRROR_CACHE names another folder") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
