"""Names the files of Spark's own logs, removes the oldest, and finds in one why its JVM ended."""

import os
import re
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

_KEPT: Final = 20
_KEPT_S: Final = 7 * 86400.0
_BEFORE_REASON: Final = re.compile(r"Error occurred during initialization of")
_THROWN: Final = re.compile(r"\b(?:\w+\.)+\w*(?:Exception|Error)\b")
_REFUSED: Final = re.compile(r"(?i)^(?!error: (?:a fatal|could not create))(?:error|invalid|unrecognized)\b")
_READ_BYTES: Final = 64 * 1024
_SHOWN: Final = 300


def spark_log_file(command: str) -> Path:
    """The file for Spark's own log when none is named. The last 20 older ones, and a week's, are kept."""
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


def reason_in_log(file: Path) -> str:
    """Return the line of a JVM's log that says why it ended; empty if there is none."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - _READ_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if not re.match(r"\s+(?:at|\.\.\.) ", line)]
    return _reason([line for line in lines if line]).removeprefix("Caused by: ")[:_SHOWN]


def _reason(lines: Sequence[str]) -> str:
    """The line after the one that says that the JVM did not begin, else the last exception."""
    for line, after in pairwise(lines):
        if _BEFORE_REASON.search(line):
            return after
    for pattern in (_THROWN, _REFUSED):
        found = next((line for line in reversed(lines) if pattern.search(line)), None)
        if found is not None:
            return found
    return lines[-1] if lines else ""


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
