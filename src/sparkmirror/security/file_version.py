"""Tells whether a file has changed, without reading it."""

import os
from pathlib import Path
from typing import NamedTuple


class FileVersion(NamedTuple):
    """Differs whenever a file was replaced or written again."""

    modified_ns: int
    size: int
    inode: int


def file_version(path: str | os.PathLike[str]) -> FileVersion | None:
    """Return a file's version; None for one that is not there or can't be looked at."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return FileVersion(found.st_mtime_ns, found.st_size, found.st_ino)
