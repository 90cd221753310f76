"""Decides what a container runs, by its arguments and environment variables, as other images of Kafka do.

Pure.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from sparkmirror.cli.command_list import COMMANDS
from sparkmirror.container.executor import executor_command
from sparkmirror.container.jvm_options import jvm_options
from sparkmirror.container.worker_variables import (
    log_level,
    properties_text,
    worker_properties,
    worker_variables,
)

HTTP: Final = "SPARKMIRROR_HTTP"
_HTTP_DEFAULT: Final = "127.0.0.1:8080"
_SCRIPTS: Final = {"connect-mirror-maker.sh": "run", "connect-distributed.sh": "worker"}
_FILES: Final = {"run": "mm2.properties", "worker": "connect-distributed.properties"}
_WRAPPERS: Final = ("container", "docker-entrypoint.sh", "entry.py")
"""Names of the entry itself, before whose arguments they stand."""
_FROM_VARIABLES: Final = ((), ("start",), ("worker",), ("/etc/confluent/docker/run",))
_OURS: Final = "sparkmirror"


class Command(NamedTuple):
    """A command of sparkmirror. `properties` is the text of the file that is its last argument, if any."""

    words: tuple[str, ...]
    properties: str | None = None
    remarks: tuple[str, ...] = ()


class Program(NamedTuple):
    """Another program, which takes the process over."""

    words: tuple[str, ...]


class Usage(NamedTuple):
    """The text that a script of Kafka's prints when its file is missing; it ends with exit code 1."""

    text: str


Launch = Command | Program | Usage


def launch(words: Sequence[str], environ: Mapping[str, str]) -> Launch:
    """`words` begin with the path by which the entry was called. Raises ConfigError."""
    words = [*words]
    while words and PurePath(words[0]).name in _WRAPPERS:
        words = words[1:]
    if words and PurePath(words[0]).name == _OURS:
        return Command(tuple(words[1:])) if len(words) == 1 else launch(words[1:], environ)
    if words and PurePath(words[0]).name in _SCRIPTS:
        return _of_script(words[0], words[1:], environ)
    if tuple(words) in _FROM_VARIABLES and (words or worker_variables(environ)):
        return _of_variables(environ)
    if words[:1] == ["executor"]:
        return Program(tuple(executor_command(environ)))
    if not words or words[0] in COMMANDS or words[0].startswith("-"):
        return _of_command(words, environ)
    return Program(tuple(words))


def _of_script(script: str, rest: list[str], environ: Mapping[str, str]) -> Launch:
    command = _SCRIPTS[PurePath(script).name]
    given = [word for word in rest if word != "-daemon"]
    if not given:
        return Usage(f"USAGE: {script} [-daemon] {_FILES[command]}")
    made = _of_command([command, *given], environ)
    daemon = ("-daemon has no effect: a container runs its program in the foreground",)
    return made if given == rest else made._replace(remarks=(*made.remarks, *daemon))


def _of_command(words: list[str], environ: Mapping[str, str]) -> Command:
    if not words or words[0] not in _FILES:
        return Command(tuple(words))
    made = _with_options(words, environ)
    unused = ", ".join(worker_variables(environ)) if words[0] == "worker" else ""
    remarks = (f"{unused}: no effect, since a file is given",) if unused else ()
    return made._replace(remarks=(*remarks, *made.remarks))


def _of_variables(environ: Mapping[str, str]) -> Command:
    properties = properties_text(worker_properties(environ))
    level = log_level(environ)
    made = _with_options(["worker", *(["--log-level", level] if level else [])], environ)
    return made._replace(properties=properties)


def _with_options(words: list[str], environ: Mapping[str, str]) -> Command:
    """Add what variables ask for before the user's options, of which the last one counts."""
    exporter, without_effect = jvm_options(environ)
    added = []
    http = environ.get(HTTP, _HTTP_DEFAULT)
    if words[0] == "run" and http:
        added += ["--http", http]
    if exporter is not None:
        added += ["--metrics-port", exporter.address, "--metrics-rules", exporter.rules]
    return Command((words[0], *added, *words[1:]), remarks=without_effect)
