"""Deploys the three connectors of a mirror by three files: `sparkmirror deploy CLUSTER` and its opposites.

Does what `mm2.sh` does with curl, and prints the same lines: connectors `mm2-cpc-CLUSTER`,
`mm2-hbc-CLUSTER` and `mm2-msc-CLUSTER`, configured by files of these names and `.json`.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.cli.arguments import not_empty, positive
from sparkmirror.cli.commands.connectors.command import cause, status_view
from sparkmirror.cli.commands.connectors.input_files import read_file
from sparkmirror.cli.commands.connectors.rest_commands import (
    RestCommand,
    add_rest_command,
    print_error,
    print_line,
)
from sparkmirror.cli.commands.connectors.views import View, show
from sparkmirror.cli.commands.connectors.wait import GONE, StateWait, WaitResult, status_of
from sparkmirror.cli.exit_codes import FINE, NOT_FINE
from sparkmirror.client.connect_objects import ConnectorStateInfo
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest
from sparkmirror.config.two_policies import difference_to_others
from sparkmirror.domain.errors import ConfigError, SparkmirrorError

_FOLDER: Final = "mm2"
_RUNNING: Final = "RUNNING"

_FILES_HELP = """\
The files are mm2-cpc-CLUSTER.json, mm2-hbc-CLUSTER.json and mm2-msc-CLUSTER.json, for the checkpoint, the
heartbeat and the source connector of a mirror from CLUSTER; each connector has the name of its file.
"""
_DEPLOY_HELP = f"""\
Configure the connectors of a mirror, wait until they run, and print their states. Those that run already are
not changed: `redeploy` applies changed files.

{_FILES_HELP}
examples:
  sparkmirror deploy source-0
  sparkmirror deploy source-0 --dir mirrors/mm2 --url http://connect-1:8083

`sparkmirror plan FILE --worker connect-distributed.properties` shows what the source connector would do.
"""
_UNDEPLOY_HELP = """\
Remove the connectors of a mirror, and wait until they are gone. Their offsets stay: a mirror that is deployed
again continues where it was.

example:
  sparkmirror undeploy source-0
"""
_REDEPLOY_HELP = f"""\
Remove the connectors of a mirror, if they are there, and deploy them again. The files are checked first.

{_FILES_HELP}
example:
  sparkmirror redeploy source-0
"""


class _Part(NamedTuple):
    """One of the three connectors of a mirror, and its names in the lines that are printed."""

    short: str
    word: str
    title: str
    in_states: str


_PARTS: Final = (
    _Part("cpc", "checkpoints", "Checkpoints", "Checkpoint"),
    _Part("hbc", "heartbeats", "Heartbeat", "Heartbeat"),
    _Part("msc", "source", "Source", "Source"),
)


class _Connector(NamedTuple):
    part: _Part
    cluster: str
    folder: Path

    @property
    def name(self) -> str:
        return f"mm2-{self.part.short}-{self.cluster}"

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.json"


class _Wanted(NamedTuple):
    """A connector and the configuration in its file; `remarks` are about how it is written."""

    connector: _Connector
    config: Mapping[str, str]
    remarks: Sequence[str]

    def differences(self, configured: Mapping[str, str]) -> list[str]:
        """The keys that have another value; values may be secrets."""
        wanted = {**self.config, "name": self.connector.name}
        return sorted(
            key for key in wanted.keys() | configured.keys() if wanted.get(key) != configured.get(key)
        )


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    for verb in (
        RestCommand("deploy", "run the connectors of a mirror, by their files", _DEPLOY_HELP, _deploy),
        RestCommand(
            "redeploy", "remove the connectors of a mirror, and run them again", _REDEPLOY_HELP, _redeploy
        ),
    ):
        parser = _add(subparsers, verb)
        parser.add_argument(
            "--dir", type=Path, default=_FOLDER, metavar="DIR", help="where the files are (%(default)s)"
        )
        parser.add_argument("--no-wait", action="store_true", help="do not wait until they run")
    _add(subparsers, RestCommand("undeploy", "remove the connectors of a mirror", _UNDEPLOY_HELP, _undeploy))


def _add(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", verb: RestCommand
) -> argparse.ArgumentParser:
    parser = add_rest_command(subparsers, verb)
    parser.add_argument("cluster", type=not_empty, metavar="CLUSTER", help="the cluster that is mirrored")
    parser.add_argument(
        "--timeout", type=positive, default=60, metavar="SECONDS", help="how long to wait (%(default)s)"
    )
    return parser


def _deploy(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    wanted = _read_files(arguments)
    print_line(f"Deploying cluster {arguments.cluster}")
    return _put_all(connect, arguments, wanted)


def _redeploy(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    wanted = _read_files(arguments)
    print_line(f"Redeploying cluster {arguments.cluster}")
    code = _remove_all(connect, arguments)
    return code if code != FINE else _put_all(connect, arguments, wanted)


def _undeploy(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    print_line(f"Undeploying cluster {arguments.cluster}")
    return _remove_all(connect, arguments)


def show_status(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    """Print the states of the three connectors as mm2.sh does.

    The exit code tells whether all of them run.
    """
    found = {each: status_of(connect, each.name) for each in _connectors(arguments.cluster)}
    if arguments.output != "table":
        show(View({each.name: status for each, status in found.items()}, (), ()), arguments.output)
    code = FINE
    for each, status in found.items():
        if arguments.output == "table":
            _print_state(each, status)
        view = status_view([] if status is None else [status], None)
        for note in view.notes:
            print_error(arguments.prog, note)
        code = max(code, NOT_FINE if status is None else view.code)
    return code


def _connectors(cluster: str, folder: Path | None = None) -> list[_Connector]:
    return [_Connector(part, cluster, folder or Path(_FOLDER)) for part in _PARTS]


def _read_files(arguments: argparse.Namespace) -> list[_Wanted]:
    """Raises ConfigError naming every file that is missing, or the first that can't be used."""
    connectors = _connectors(arguments.cluster, arguments.dir)
    missing = [each for each in connectors if not each.file.is_file()]
    if missing:
        lines = [f"{each.part.title} conf is missing. Create file {each.file}" for each in missing]
        raise SparkmirrorError("\n".join(lines))
    return [_read(each) for each in connectors]


def _read(connector: _Connector) -> _Wanted:
    given = read_file(connector.file)
    if given.name not in (None, connector.name):
        raise ConfigError(str(connector.file), None, f"is of {given.name}, not of {connector.name}")
    if not given.config.get("connector.class"):
        raise ConfigError(str(connector.file), None, "has no connector.class")
    return _Wanted(connector, given.config, given.remarks)


def _put_all(connect: ConnectRest, arguments: argparse.Namespace, wanted: Sequence[_Wanted]) -> int:
    _print_remarks(wanted)
    codes = [_put(connect, each) for each in wanted]
    deployed = [each.connector for each, code in zip(wanted, codes, strict=True) if code == FINE]
    if not arguments.no_wait:
        results = StateWait(connect, _RUNNING, arguments.timeout).results([each.name for each in deployed])
        for each, ending in zip(deployed, results, strict=True):
            _print_state(each, ending.status)
            if ending.why is not None:
                codes.append(_print_failure(ending))
    return max(codes)


def _print_remarks(wanted: Sequence[_Wanted]) -> None:
    for each in wanted:
        for remark in each.remarks:
            print_error(each.connector.name, remark)
    first, *others = wanted
    for told in difference_to_others(first.config, [other.config for other in others]):
        print_error(first.connector.name, told)


def _put(connect: ConnectRest, wanted: _Wanted) -> int:
    connector, part = wanted.connector, wanted.connector.part
    if _state(connect, connector.name) == _RUNNING:
        print_line(f"{part.title} connector already deployed")
        if wanted.differences(connect.config(connector.name)):
            print_error(
                connector.name, f"runs with other settings than {connector.file}; redeploy applies them"
            )
        return FINE
    print_line(f"Deploying {part.word} connector")
    try:
        connect.put(connector.name, wanted.config)
    except ConnectRefusedError as error:
        print_error(f"ERROR: Failed to deploy {part.word} connector", error)
        return NOT_FINE
    return FINE


def _remove_all(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    connectors = _connectors(arguments.cluster)
    codes = [_remove(connect, each) for each in connectors]
    results = StateWait(connect, GONE, arguments.timeout).results([each.name for each in connectors])
    return max(codes + [_print_failure(ending) for ending in results if ending.why is not None])


def _remove(connect: ConnectRest, connector: _Connector) -> int:
    word = connector.part.word
    try:
        connect.delete(connector.name)
    except ConnectRefusedError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            print_error(f"ERROR: Failed to undeploy {word} connector", error)
            return NOT_FINE
        print_line(f"WARN: {word} connector not found")
    print_line(f"{word.capitalize()} connector undeployed")
    return FINE


def _state(connect: ConnectRest, name: str) -> str | None:
    status = status_of(connect, name)
    return None if status is None else status["connector"]["state"]


def _print_state(connector: _Connector, status: ConnectorStateInfo | None) -> None:
    """Print a state in the format of `jq .connector.state`, which scripts parse."""
    state = None if status is None else status["connector"]["state"]
    print_line(f"{connector.part.in_states} connector: {json.dumps(state)}")


def _print_failure(result: WaitResult) -> int:
    """Print why a connector isn't in the wanted state, with the causes; returns the exit code."""
    print_error(result.name, result.why)
    if result.status is not None:
        for found in (result.status["connector"], *result.status["tasks"]):
            if found.get("trace"):
                print_error(result.name, cause(found["trace"]))
    return NOT_FINE
