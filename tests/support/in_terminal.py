"""Runs a command in a pseudo-terminal, as a user does."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.waiting import patience

_SIZE: Final = (40, 160)
_WITHIN_S: Final = 120.0


PROGRAM: Final = Path(sys.executable).with_name("sparkmirror")


def shown_in_a_terminal(
    words: Sequence[str], until: bytes, keys: bytes = b"q", code: int = 0, program: Path = PROGRAM
) -> bytes:
    """Return what `sparkmirror` shows until that text; then type the keys, and require this exit code."""
    leading, following = pty.openpty()
    termios.tcsetwinsize(following, _SIZE)
    process = subprocess.Popen(
        [program, *words],
        stdin=following,
        stdout=following,
        stderr=following,
        env={**os.environ, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"},
        start_new_session=True,
    )
    os.close(following)
    try:
        seen = _read_until(leading, until)
        os.write(leading, keys)
        _read_until(leading, None)
        assert process.wait(30) == code
    finally:
        process.kill()
        process.wait()
        os.close(leading)
    return seen


def _read_until(terminal: int, text: bytes | None) -> bytes:
    """Return what the terminal got, to its end if there is no text."""
    seen, deadline = b"", time.monotonic() + _WITHIN_S * patience()
    while text is None or text not in seen:
        left_s = deadline - time.monotonic()
        assert left_s > 0, seen[-3000:]
        if select.select([terminal], [], [], left_s)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # nobody has the other side open any more
                assert text is None, seen[-3000:]
                break
    return seen
