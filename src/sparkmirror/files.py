"""Opens files that a configuration names, whose author need not be trusted; writes files whole.

Where the first must lie below certain folders, every folder on the way is opened from the one above and no
link is followed: what was a file when the path was looked up can't be swapped for a link before it is opened.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple


class NamedFile(NamedTuple):
    """A file that must lie below one of the `roots` after links are resolved; anywhere without any."""

    path: str
    roots: tuple[str, ...] = ()

    def read(self, bytes_max: int) -> bytes:
        """Raises OSError, whose strerror is the reason, for a device and for a file above the limit too."""
        try:
            number = self.opened()
        except ValueError as error:  # it has a null character
            raise OSError(errno.EINVAL, "is not a path") from error
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise OSError(errno.EINVAL, "is not a regular file")
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise OSError(errno.EFBIG, f"is larger than {bytes_max} bytes")
        return content

    def opened(self) -> int:
        """A descriptor to read from, which the caller closes. Opening a pipe does not wait."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        if not self.roots:
            return os.open(self.path, flags)
        real = Path(os.path.realpath(self.path))
        for root in (Path(os.path.realpath(folder)) for folder in self.roots):
            if real != root and real.is_relative_to(root):
                return opened_below(root, real.relative_to(root).parts, flags)
        raise PermissionError(errno.EACCES, "is not below a folder that is allowed")


def opened_below(root: Path, parts: tuple[str, ...], flags: int) -> int:
    """Raises OSError where a part is a link, as it may be since the path was resolved."""
    flags |= os.O_NOFOLLOW
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(parts[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path of a draft, which takes the place of the file when the block has ended without an error.

    Raises OSError, with the name of the file: on a full disk the former file stays, nothing of a new one.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if error.filename:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink()
