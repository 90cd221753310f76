"""Starts what a container runs: the entry point of the image, and Kafka's scripts in it."""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from sparkmirror.cli.exit_codes import CANNOT_TELL, INTERRUPTED, NOT_FINE
from sparkmirror.cli.logging import configure_logging
from sparkmirror.cli.main import main as sparkmirror
from sparkmirror.config.properties import read_properties
from sparkmirror.container.health import NOTHING_SERVED, health_url, option, place
from sparkmirror.container.launch import Command, Launch, Program, Usage, launch
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.printable import printable

_log = logging.getLogger("sparkmirror.container")

_NOT_EXECUTABLE: Final = 126
_NOT_FOUND: Final = 127


def main(words: Sequence[str] | None = None) -> int:
    """Return the exit code. A container's first process gets no signal before it has a handler for it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _started(launch(sys.argv if words is None else words, os.environ))
    except ConfigError as error:
        return _failed(str(error), CANNOT_TELL)
    except KeyboardInterrupt:
        return INTERRUPTED


def _started(decided: Launch) -> int:
    match decided:
        case Usage(text):
            sys.stdout.write(f"{text}\n")
            return NOT_FINE
        case Program(program):
            return _become(program)
        case Command():
            return _run(decided)


def _run(command: Command) -> int:
    words = command.words
    try:
        if command.properties is not None:
            words = (*words, _written(command.properties))
        _note_health(words)
    except OSError as error:
        return _failed(f"{error}; mount a tmpfs or a volume at /tmp", CANNOT_TELL)
    if command.remarks:
        configure_logging("json" if option(words, "--log-format") == "json" else "text")
    for remark in command.remarks:
        _log.warning("%s", remark)
    return sparkmirror(words)


def _become(words: tuple[str, ...]) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError):  # a program needs no folder that can be written
        place().write_text(NOTHING_SERVED, encoding="utf-8")
    try:
        os.execvp(words[0], words)  # noqa: S606 - the user's own command
    except OSError as error:
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        return _failed(f"{words[0]}: {error.strerror}", code)


def _written(properties: str) -> str:
    """Write a worker's file, which only this user can read: it may hold passwords."""
    number, path = tempfile.mkstemp(prefix="connect-distributed-", suffix=".properties")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(properties)
    return path


def _note_health(words: Sequence[str]) -> None:
    place().write_text(health_url(words, _listeners) or NOTHING_SERVED, encoding="utf-8")


def _listeners(file: str) -> str | None:
    try:
        return read_properties(Path(file)).get("listeners")
    except ConfigError:  # the worker will say so
        return None


def _failed(text: str, code: int) -> int:
    sys.stderr.write(f"sparkmirror: {printable(text)}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
