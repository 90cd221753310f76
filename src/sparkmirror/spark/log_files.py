"""Names the files of Spark's own logs, and removes the oldest."""

import os
import tempfile
import time
from pathlib import Path
from typing import Final

_KEPT: Final = 20
_KEPT_S: Final = 7 * 86400.0


def spark_log_file(command: str) -> Path:
    """The file for Spark's own log when none is named. Of older ones the last 20, and a week's, are kept."""
    folder = log_directory()
    _remove_old(folder)
    return folder / f"spark-{command}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"


def log_directory() -> Path:
    """Return the default folder of logs, which other users can neither read nor prepare.

    Raises SparkmirrorError where there is none.
    """
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    folder = Path(state).expanduser() / "sparkmirror"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a container's user may have no home
        return Path(tempfile.mkdtemp(prefix="sparkmirror-"))
    return folder


def _remove_old(folder: Path) -> None:
    """A log that a mirror still writes is of this week. One that can't be removed stays."""
    written = []
    for file in folder.glob("spark-*-*.log"):
        try:
            written.append((file.stat().st_mtime, file))
        except OSError:
            continue
    for modified, file in sorted(written)[:-_KEPT]:
        if time.time() - modified > _KEPT_S:
            try:
                file.unlink()
            except OSError:
                continue
