"""Changes connectors: `create`, `put`, `patch`, `pause`, `resume`, `stop`, `restart` and `delete`."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sparkmirror.cli.arguments import not_empty, not_negative
from sparkmirror.cli.commands.connectors.input_files import GIVEN_HELP, read_given
from sparkmirror.cli.commands.connectors.queries import cause
from sparkmirror.cli.commands.connectors.rest_commands import (
    DONE,
    REFUSED,
    RestCommand,
    add_rest_command,
    print_error,
    print_line,
    run_for_each,
)
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.cli.commands.connectors.wait import GONE, StateWait, WaitResult, add_wait_arguments
from sparkmirror.client.connect_objects import ConnectorInfo
from sparkmirror.client.connect_rest import ConnectRest
from sparkmirror.config.known_keys import unread_connector_keys
from sparkmirror.config.masking import masked
from sparkmirror.domain.errors import ConfigError

_MIRROR_MAKERS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")

_CREATE_HELP = """\
Create a connector; its name must be new. The name is given in the file, or as name=…

examples:
  sparkmirror connectors create mm2-msc.json --wait
  sparkmirror connectors create mm2-msc.yaml tasks.max=4 --state stopped
  jq … | sparkmirror connectors create -
"""
_PUT_HELP = """\
Create a connector, or replace all its settings by those that are given.

examples:
  sparkmirror connectors put mm2-msc mm2-msc.json --wait
  sparkmirror connectors put mm2-msc base.yaml topics='orders.*'
"""
_PATCH_HELP = """\
Change some settings of a connector (Kafka 3.8 and newer). null in a file, or --remove, removes a setting.

examples:
  sparkmirror connectors patch mm2-msc tasks.max=8
  sparkmirror connectors patch mm2-msc --remove topics.exclude --wait
"""
_RESTART_HELP = """\
Restart connectors; without --include-tasks, their tasks run on.

examples:
  sparkmirror connectors restart mm2-msc --include-tasks --only-failed --wait
  sparkmirror connectors restart mm2-msc --task 3
"""


class _StateChange(NamedTuple):
    """A command that requests another state of connectors."""

    name: str
    help: str
    text: str
    request: Callable[[ConnectRest, str], None]
    result: str
    wanted: str
    until: str


_STATE_CHANGES = (
    _StateChange(
        "pause",
        "pause connectors; their tasks stay assigned",
        "Pause connectors: their tasks stay assigned, and do nothing.\n",
        ConnectRest.pause,
        "is going to pause",
        "PAUSED",
        "they and all their tasks are PAUSED",
    ),
    _StateChange(
        "resume",
        "resume paused and stopped connectors",
        "Resume connectors that were paused or stopped.\n",
        ConnectRest.resume,
        "is going to run",
        "RUNNING",
        "they and all their tasks are RUNNING",
    ),
    _StateChange(
        "stop",
        "stop connectors and take their tasks away",
        "Stop connectors: they keep their settings and offsets, and have no tasks. Only then can offsets be\n"
        "changed.\n",
        ConnectRest.stop,
        "is going to stop",
        "STOPPED",
        "they are STOPPED",
    ),
    _StateChange(
        "delete",
        "remove connectors; their offsets stay",
        "Remove connectors. Their offsets stay: one that is created with the same name continues there.\n",
        ConnectRest.delete,
        "deleted",
        GONE,
        "they and their tasks are gone",
    ),
)


def add_commands(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_rest_command(verbs, RestCommand("create", "create a connector", _CREATE_HELP, _create))
    parser.add_argument("given", nargs="+", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    parser.add_argument(
        "--state",
        choices=("running", "paused", "stopped"),
        help="its initial state (running; the others need Kafka 3.7)",
    )
    _add_given_arguments(parser)
    parser = add_rest_command(
        verbs, RestCommand("put", "create a connector or replace its settings", _PUT_HELP, _put)
    )
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("given", nargs="+", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    _add_given_arguments(parser)
    parser = add_rest_command(
        verbs, RestCommand("patch", "change some of a connector's settings", _PATCH_HELP, _patch)
    )
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("given", nargs="*", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    parser.add_argument("--remove", action="append", default=[], metavar="KEY", help="may be repeated")
    _add_given_arguments(parser)
    for change in _STATE_CHANGES:
        _add_state_change(verbs, change)
    parser = add_rest_command(
        verbs, RestCommand("restart", "restart connectors, or tasks", _RESTART_HELP, _restart)
    )
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    parser.add_argument("--include-tasks", action="store_true", help="their tasks too")
    parser.add_argument("--only-failed", action="store_true", help="only what is FAILED")
    parser.add_argument(
        "--task", type=not_negative, action="append", metavar="N", help="only this task; may be repeated"
    )
    add_wait_arguments(parser, "they and all their tasks are RUNNING")


def print_result(result: WaitResult) -> int:
    """Print a connector's state, with the cause if it failed; returns the exit code."""
    if result.why is None:
        state = GONE if result.status is None else result.status["connector"]["state"]
        tasks = len(result.status["tasks"]) if result.status is not None else 0
        print_line(f"{result.name}: {state}" + (f", {tasks} task{'s' * (tasks != 1)}" if tasks else ""))
        return DONE
    print_error(result.name, result.why)
    if result.status is not None:
        for found in (result.status["connector"], *result.status["tasks"]):
            if found.get("trace"):
                print_error(result.name, cause(found["trace"]))
    return REFUSED


def _add_given_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_argument(parser)
    add_wait_arguments(parser, "it and all its tasks have the wanted state")


def _add_state_change(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", change: _StateChange
) -> None:
    examples = f"\nexample:\n  sparkmirror connectors {change.name} mm2-msc mm2-cpc --wait\n"

    def act(connect: ConnectRest, arguments: argparse.Namespace) -> int:
        return _change_state(connect, arguments, change)

    parser = add_rest_command(verbs, RestCommand(change.name, change.help, change.text + examples, act))
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    add_wait_arguments(parser, change.until)


def _create(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    given = read_given(arguments.given)
    config = given.texts()
    name = given.name or config.get("name")
    if not name:
        raise ConfigError("name", None, "is missing: give it in the file, or as name=…")
    state = (arguments.state or given.initial_state or "").upper() or None
    info = connect.create(name, config, state)
    return _report(connect, arguments, info, "created", state or "RUNNING")


def _put(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    given = read_given(arguments.given)
    if given.name not in (None, arguments.name):
        raise ConfigError("name", given.name, f"is not {arguments.name}, which is to be configured")
    is_new, info = connect.put(arguments.name, given.texts())
    return _report(connect, arguments, info, "created" if is_new else "configured", "RUNNING")


def _patch(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    changes = {**read_given(arguments.given).config, **dict.fromkeys(arguments.remove)}
    if not changes:
        raise ConfigError("patch", None, "has nothing to change")
    return _report(connect, arguments, connect.patch(arguments.name, changes), "configured", "RUNNING")


def _report(
    connect: ConnectRest, arguments: argparse.Namespace, info: ConnectorInfo, done: str, wanted: str
) -> int:
    """Print what was done, and wait for the wanted state with `--wait`."""
    _warn_of_unread_keys(info)
    content = {**info, "config": masked(info["config"])}
    if arguments.output == "table":
        print_line(f"{info['name']}: {done}")
    else:
        show(View(content, (), ()), arguments.output)
    return _wait(connect, arguments, [info["name"]], wanted) if arguments.wait else DONE


def _warn_of_unread_keys(info: ConnectorInfo) -> None:
    """The worker's log has them too, and whoever typed them does not read it."""
    config = info["config"]
    if config.get("connector.class", "").rpartition(".")[2] in _MIRROR_MAKERS:
        for key in unread_connector_keys(config):
            print_error(info["name"], f"nothing reads {key}")


def _change_state(connect: ConnectRest, arguments: argparse.Namespace, change: _StateChange) -> int:
    changed = []

    def act(name: str) -> int:
        change.request(connect, name)
        print_line(f"{name}: {change.result}")
        changed.append(name)
        return DONE

    code = run_for_each(arguments.names, act)
    return max(code, _wait(connect, arguments, changed, change.wanted) if arguments.wait else DONE)


def _restart(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    restarted = []

    def act(name: str) -> int:
        for task in arguments.task or ():
            connect.restart_task(name, task)
            print_line(f"{name}: task {task} is going to restart")
        if not arguments.task:
            connect.restart(name, include_tasks=arguments.include_tasks, only_failed=arguments.only_failed)
            print_line(f"{name}: is going to restart")
        restarted.append(name)
        return DONE

    code = run_for_each(arguments.names, act)
    return max(code, _wait(connect, arguments, restarted, "RUNNING") if arguments.wait else DONE)


def _wait(connect: ConnectRest, arguments: argparse.Namespace, names: Sequence[str], wanted: str) -> int:
    results = StateWait(connect, wanted, arguments.timeout).results(names)
    return max(map(print_result, results), default=DONE)
