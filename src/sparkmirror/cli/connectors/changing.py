"""`create`, `put`, `patch`, `pause`, `resume`, `stop`, `restart`, `delete`: what changes connectors."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sparkmirror.cli.arguments import not_negative
from sparkmirror.cli.connectors.asking import (
    DONE,
    REFUSED,
    Verb,
    add_verb,
    complain,
    for_each,
    not_empty,
    say,
)
from sparkmirror.cli.connectors.documents import GIVEN_HELP, read_given
from sparkmirror.cli.connectors.showing import cause
from sparkmirror.cli.connectors.views import View, add_output_argument, masked, show
from sparkmirror.cli.connectors.waiting import GONE, Ending, Waiting, add_wait_arguments
from sparkmirror.client.connect_objects import ConnectorInfo
from sparkmirror.client.connect_rest import ConnectRest
from sparkmirror.domain.errors import ConfigError

_CREATE_HELP = """\
Create a connector; one of its name must not exist. The name stands in the file, or as name=…

examples:
  sparkmirror connectors create mm2-msc.json --wait
  sparkmirror connectors create mm2-msc.yaml tasks.max=4 --state stopped
  jq … | sparkmirror connectors create -
"""
_PUT_HELP = """\
Create a connector, or give it other settings: those that are given are all that it has afterwards.

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


class _Move(NamedTuple):
    """A verb that asks connectors to be something else."""

    verb: str
    help: str
    text: str
    ask: Callable[[ConnectRest, str], None]
    saying: str
    wanted: str
    until: str


_MOVES = (
    _Move(
        "pause",
        "let connectors pause, with their tasks at hand",
        "Let connectors pause: their tasks stay where they are, and do nothing.\n",
        ConnectRest.pause,
        "is going to pause",
        "PAUSED",
        "they and all their tasks are PAUSED",
    ),
    _Move(
        "resume",
        "let paused and stopped connectors go on",
        "Let connectors go on that were paused or stopped.\n",
        ConnectRest.resume,
        "is going to run",
        "RUNNING",
        "they and all their tasks are RUNNING",
    ),
    _Move(
        "stop",
        "stop connectors and take their tasks away",
        "Stop connectors: they keep their settings and offsets, and have no tasks. Only then can offsets be\n"
        "changed.\n",
        ConnectRest.stop,
        "is going to stop",
        "STOPPED",
        "they are STOPPED",
    ),
    _Move(
        "delete",
        "remove connectors; their offsets stay",
        "Remove connectors. Their offsets stay: one that is created with the same name goes on from there.\n",
        ConnectRest.delete,
        "deleted",
        GONE,
        "nothing of them is left",
    ),
)


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, Verb("create", "create a connector", _CREATE_HELP, _create))
    parser.add_argument("given", nargs="+", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    parser.add_argument(
        "--state",
        choices=("running", "paused", "stopped"),
        help="what it is to be at first (running; the others need Kafka 3.7)",
    )
    _add_given_arguments(parser)
    parser = add_verb(verbs, Verb("put", "create a connector or configure it anew", _PUT_HELP, _put))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("given", nargs="+", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    _add_given_arguments(parser)
    parser = add_verb(verbs, Verb("patch", "change some of a connector's settings", _PATCH_HELP, _patch))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("given", nargs="*", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    parser.add_argument("--remove", action="append", default=[], metavar="KEY", help="may be repeated")
    _add_given_arguments(parser)
    for move in _MOVES:
        _add_move(verbs, move)
    parser = add_verb(verbs, Verb("restart", "restart connectors, or tasks", _RESTART_HELP, _restart))
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    parser.add_argument("--include-tasks", action="store_true", help="their tasks too")
    parser.add_argument("--only-failed", action="store_true", help="only what is FAILED")
    parser.add_argument(
        "--task", type=not_negative, action="append", metavar="N", help="only this task; may be repeated"
    )
    add_wait_arguments(parser, "they and all their tasks are RUNNING")


def tell(ending: Ending) -> int:
    """What has become of a connector, with the cause if it failed; the exit code."""
    if ending.why is None:
        state = GONE if ending.status is None else ending.status["connector"]["state"]
        tasks = len(ending.status["tasks"]) if ending.status is not None else 0
        say(f"{ending.name}: {state}" + (f", {tasks} task{'s' * (tasks != 1)}" if tasks else ""))
        return DONE
    complain(ending.name, ending.why)
    if ending.status is not None:
        for found in (ending.status["connector"], *ending.status["tasks"]):
            if found.get("trace"):
                complain(ending.name, cause(found["trace"]))
    return REFUSED


def _add_given_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_argument(parser)
    add_wait_arguments(parser, "it and all its tasks are what they are to be")


def _add_move(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", move: _Move) -> None:
    examples = f"\nexample:\n  sparkmirror connectors {move.verb} mm2-msc mm2-cpc --wait\n"

    def act(connect: ConnectRest, arguments: argparse.Namespace) -> int:
        return _move(connect, arguments, move)

    parser = add_verb(verbs, Verb(move.verb, move.help, move.text + examples, act))
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    add_wait_arguments(parser, move.until)


def _create(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    given = read_given(arguments.given)
    config = given.texts()
    name = given.name or config.get("name")
    if not name:
        raise ConfigError("name", None, "is missing: it stands in the file, or as name=…")
    state = (arguments.state or given.initial_state or "").upper() or None
    info = connect.create(name, config, state)
    return _told(connect, arguments, info, "created", state or "RUNNING")


def _put(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    given = read_given(arguments.given)
    if given.name not in (None, arguments.name):
        raise ConfigError("name", given.name, f"is not {arguments.name}, which is to be configured")
    is_new, info = connect.put(arguments.name, given.texts())
    return _told(connect, arguments, info, "created" if is_new else "configured", "RUNNING")


def _patch(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    changes = {**read_given(arguments.given).config, **dict.fromkeys(arguments.remove)}
    if not changes:
        raise ConfigError("patch", None, "is given nothing to change")
    return _told(connect, arguments, connect.patch(arguments.name, changes), "configured", "RUNNING")


def _told(
    connect: ConnectRest, arguments: argparse.Namespace, info: ConnectorInfo, done: str, wanted: str
) -> int:
    """Say what was done, and wait for what comes of it."""
    content = {**info, "config": masked(info["config"])}
    if arguments.output == "table":
        say(f"{info['name']}: {done}")
    else:
        show(View(content, (), ()), arguments.output)
    return _wait(connect, arguments, [info["name"]], wanted) if arguments.wait else DONE


def _move(connect: ConnectRest, arguments: argparse.Namespace, move: _Move) -> int:
    asked = []

    def ask(name: str) -> int:
        move.ask(connect, name)
        say(f"{name}: {move.saying}")
        asked.append(name)
        return DONE

    code = for_each(arguments.names, ask)
    return max(code, _wait(connect, arguments, asked, move.wanted) if arguments.wait else DONE)


def _restart(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    restarted = []

    def ask(name: str) -> int:
        for task in arguments.task or ():
            connect.restart_task(name, task)
            say(f"{name}: task {task} is going to restart")
        if not arguments.task:
            connect.restart(name, include_tasks=arguments.include_tasks, only_failed=arguments.only_failed)
            say(f"{name}: is going to restart")
        restarted.append(name)
        return DONE

    code = for_each(arguments.names, ask)
    return max(code, _wait(connect, arguments, restarted, "RUNNING") if arguments.wait else DONE)


def _wait(connect: ConnectRest, arguments: argparse.Namespace, names: Sequence[str], wanted: str) -> int:
    endings = Waiting(connect, wanted, arguments.timeout).until_there(names)
    return max(map(tell, endings), default=DONE)
