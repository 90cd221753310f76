"""Defines `sparkmirror connectors`: what `mm2.sh` does to connectors, one at a time."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sparkmirror.cli.arguments import input_file, not_empty
from sparkmirror.cli.commands.connectors.input_files import read_file
from sparkmirror.cli.commands.connectors.rest_commands import (
    RestCommand,
    add_rest_command,
    print_error,
    print_line,
    run_for_each,
)
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.cli.commands.connectors.wait import status_of
from sparkmirror.cli.exit_codes import FINE, NOT_FINE
from sparkmirror.client.connect_objects import ConnectorStateInfo, RunState
from sparkmirror.client.connect_rest import ConnectRest
from sparkmirror.config.file_findings import connector_findings
from sparkmirror.config.masking import masked
from sparkmirror.domain.errors import ConfigError

_RUNNING: Final = "RUNNING"
_MIRROR_MAKERS: Final = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")

_HELP = """\
Sends requests to the REST API of a Connect worker, Java's included; any worker of a group will do.

A request that fails because of a rebalance is retried for a minute. For everything else that the API offers
(offsets, plugins, log levels, …) use kcctl, or curl.
"""
_EPILOG = """\
examples:
  sparkmirror connectors list    # on http://localhost:8083
  sparkmirror connectors status --url http://connect-1:8083
  sparkmirror connectors put mm2-msc mm2-msc.json
  sparkmirror connectors restart mm2-msc --include-tasks --only-failed
"""
_LIST_HELP = """\
Print a line for each connector: its state, and how many of its tasks run.

examples:
  sparkmirror connectors list
  sparkmirror connectors list --url http://connect-1:8083 -o json
"""
_STATUS_HELP = """\
Print the state of connectors, and of each of their tasks, with the cause of what has failed.
A paused or stopped connector isn't RUNNING.

examples:
  sparkmirror connectors status    # all connectors
  sparkmirror connectors status mm2-msc mm2-cpc
  watch sparkmirror connectors status
"""
_PUT_HELP = """\
Create a connector, or replace all its settings by those of a file: JSON, the settings alone or as
{"name": …, "config": {…}}.

examples:
  sparkmirror connectors put mm2-msc mm2-msc.json
  jq .config backup.json | sparkmirror connectors put mm2-msc -
"""
_RESTART_HELP = """\
Restart connectors; without --include-tasks, their tasks run on.

example:
  sparkmirror connectors restart mm2-msc --include-tasks --only-failed
"""


class _Change(NamedTuple):
    """A command that changes the state of connectors."""

    name: str
    help: str
    text: str
    request: Callable[[ConnectRest, str], None]
    result: str


_CHANGES: Final = (
    _Change(
        "pause",
        "pause connectors; their tasks stay assigned",
        "Pause connectors: their tasks stay assigned, and do nothing.\n",
        ConnectRest.pause,
        "is going to pause",
    ),
    _Change(
        "resume",
        "resume paused and stopped connectors",
        "Resume connectors that were paused or stopped.\n",
        ConnectRest.resume,
        "is going to run",
    ),
    _Change(
        "delete",
        "remove connectors; their offsets stay",
        "Remove connectors. Their offsets stay: one that is created with the same name continues there.\n",
        ConnectRest.delete,
        "deleted",
    ),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("connectors", description=_HELP, epilog=_EPILOG)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_output_argument(
        add_rest_command(verbs, RestCommand("list", "all connectors, a line each", _LIST_HELP, _list))
    )
    parser = add_rest_command(
        verbs, RestCommand("status", "states of connectors and their tasks", _STATUS_HELP, _status)
    )
    parser.add_argument("names", nargs="*", type=not_empty, metavar="NAME", help="a connector (default: all)")
    add_output_argument(parser)
    parser = add_rest_command(
        verbs, RestCommand("put", "create a connector or replace its settings", _PUT_HELP, _put)
    )
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("file", type=input_file, metavar="FILE", help="its settings (- for standard input)")
    for change in _CHANGES:
        _add_change(verbs, change)
    parser = _add_named(verbs, RestCommand("restart", "restart connectors", _RESTART_HELP, _restart))
    parser.add_argument("--include-tasks", action="store_true", help="their tasks too")
    parser.add_argument("--only-failed", action="store_true", help="only what is FAILED")


def _add_change(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", change: _Change) -> None:
    def act(connect: ConnectRest, arguments: argparse.Namespace) -> int:
        def request(name: str) -> int:
            change.request(connect, name)
            print_line(f"{name}: {change.result}")
            return FINE

        return run_for_each(arguments.names, request)

    example = f"\nexample:\n  sparkmirror connectors {change.name} mm2-msc mm2-cpc\n"
    _add_named(verbs, RestCommand(change.name, change.help, change.text + example, act))


def _add_named(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", command: RestCommand
) -> argparse.ArgumentParser:
    parser = add_rest_command(verbs, command)
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    return parser


def status_view(statuses: Sequence[ConnectorStateInfo], content: Any, absent: Sequence[str] = ()) -> View:
    """A row for each connector and each task; below them the causes of failures, and what does not exist."""
    rows, notes = [], []
    for status in statuses:
        name = status["name"]
        for task, state in _states(status):
            rows.append((name, task, state["state"], state.get("worker_id", "")))
            if state.get("trace"):
                notes.append(f"{name} {f'task {task}' if task else 'connector'}: {cause(state['trace'])}")
    notes += [f"{name} does not exist, or has no status yet" for name in absent]
    code = FINE if not absent and all(row[2] == _RUNNING for row in rows) else NOT_FINE
    return View(content, ("connector", "task", "state", "worker"), rows, notes, code)


def cause(trace: str) -> str:
    """The first line of a stack trace, and its root cause."""
    lines = [line.strip() for line in trace.splitlines()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return "; ".join([lines[0], *causes[-1:]]) if lines else ""


def _list(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    names, found, rows = sorted(connect.connectors()), connect.expanded(), []
    for name in names:
        each = found.get(name)
        if each is None:  # it has no status yet
            rows.append((name, "-", "-", "-", "-"))
            continue
        status, info = each["status"], each["info"]
        running = sum(task["state"] == _RUNNING for task in status["tasks"])
        kind = info["config"].get("connector.class", "-").rpartition(".")[2]
        tasks = f"{running}/{len(status['tasks'])}"
        rows.append((name, status.get("type", "-"), kind, status["connector"]["state"], tasks))
    content = {
        name: {**each, "info": {**each["info"], "config": masked(each["info"]["config"])}}
        for name, each in found.items()
    }
    show(View(content, ("connector", "type", "class", "state", "running tasks"), rows), arguments.output)
    return FINE


def _status(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    names = arguments.names or sorted(connect.connectors())
    found = {name: status_of(connect, name) for name in names}
    statuses = [status for status in found.values() if status is not None]
    absent = [name for name, status in found.items() if status is None] if arguments.names else []
    view = status_view(statuses, statuses, absent)
    show(view, arguments.output)
    return view.code


def _put(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    given = read_file(arguments.file)
    if given.name not in (None, arguments.name):
        raise ConfigError("name", given.name, f"is not {arguments.name}, which is to be configured")
    for remark in given.remarks:
        print_error(arguments.name, remark)
    is_new, info = connect.put(arguments.name, given.config)
    config = info["config"]
    if config.get("connector.class", "").rpartition(".")[2] in _MIRROR_MAKERS:
        for finding in connector_findings(config):
            print_error(info["name"], str(finding))
    print_line(f"{info['name']}: {'created' if is_new else 'configured'}")
    return FINE


def _restart(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def restart(name: str) -> int:
        connect.restart(name, include_tasks=arguments.include_tasks, only_failed=arguments.only_failed)
        print_line(f"{name}: is going to restart")
        return FINE

    return run_for_each(arguments.names, restart)


def _states(status: ConnectorStateInfo) -> Iterator[tuple[str, RunState]]:
    """The connector's, under an empty text, then its tasks'."""
    yield "", status["connector"]
    yield from ((str(task["id"]), task) for task in sorted(status["tasks"], key=lambda task: task["id"]))
