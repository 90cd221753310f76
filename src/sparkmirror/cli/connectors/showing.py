"""`list`, `status`, `config`, `tasks`, `topics`: what connectors are and do."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sparkmirror.cli.connectors.asking import DONE, REFUSED, Verb, add_verb, for_each, not_empty, say
from sparkmirror.cli.connectors.views import View, add_output_argument, masked, show
from sparkmirror.cli.connectors.waiting import status_of
from sparkmirror.cli.connectors.watching import add_watch_arguments, watch
from sparkmirror.client.connect_objects import ConnectorStateInfo, RunState
from sparkmirror.client.connect_rest import ConnectRest

_RUNNING = "RUNNING"

_LIST_HELP = """\
One line for each connector: its state, and how many of its tasks run.

examples:
  sparkmirror connectors list
  sparkmirror connectors list --url http://connect-1:8083 -o json
  sparkmirror connectors list --watch
"""
_STATUS_HELP = """\
The state of connectors, and of each of their tasks, with the cause of what has failed. The exit code is 0
when all of it is RUNNING, else 1; a connector that somebody has paused or stopped isn't RUNNING either.
--watch ends with Ctrl-C (or SIGTERM), and its exit code is that of the last look.

examples:
  sparkmirror connectors status                       all connectors
  sparkmirror connectors status mm2-msc mm2-cpc
  sparkmirror connectors status --watch --every 5
  timeout 60 sparkmirror connectors status --watch -o json > states.json
"""
_CONFIG_HELP = """\
The settings of a connector as it was configured. Secrets are masked; -o json is what `put` takes.

examples:
  sparkmirror connectors config mm2-msc
  sparkmirror connectors config mm2-msc -o json > mm2-msc.json
"""
_TASKS_HELP = """\
The tasks of a connector and their states; with --configs what each of them has to do.

examples:
  sparkmirror connectors tasks mm2-msc
  sparkmirror connectors tasks mm2-msc --configs -o yaml
"""
_TOPICS_HELP = """\
The topics that connectors have used since they were created, or since the last --reset.

examples:
  sparkmirror connectors topics mm2-msc
  sparkmirror connectors topics mm2-msc --reset
"""


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, Verb("list", "all connectors, a line each", _LIST_HELP, _list))
    add_output_argument(parser)
    add_watch_arguments(parser)
    parser = add_verb(verbs, Verb("status", "how connectors and their tasks are", _STATUS_HELP, _status))
    parser.add_argument("names", nargs="*", type=not_empty, metavar="NAME", help="a connector (default: all)")
    add_output_argument(parser)
    add_watch_arguments(parser)
    parser = add_verb(verbs, Verb("config", "the settings of a connector", _CONFIG_HELP, _config))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    add_secrets_argument(parser)
    add_output_argument(parser)
    parser = add_verb(verbs, Verb("tasks", "the tasks of a connector", _TASKS_HELP, _tasks))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("--configs", action="store_true", help="their settings, not their states")
    add_secrets_argument(parser)
    add_output_argument(parser)
    parser = add_verb(verbs, Verb("topics", "the topics that connectors use", _TOPICS_HELP, _topics))
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    parser.add_argument("--reset", action="store_true", help="forget them, and begin to note them anew")
    add_output_argument(parser)


def add_secrets_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--show-secrets", action="store_true", help="passwords and the like too")


def status_view(statuses: Sequence[ConnectorStateInfo], content: Any) -> View:
    """A row for each connector and each task; below them, why something has failed."""
    rows, notes = [], []
    for status in statuses:
        name = status["name"]
        for task, state in _states(status):
            rows.append((name, task, state["state"], state.get("worker_id", "")))
            if state.get("trace"):
                notes.append(f"{name} {f'task {task}' if task else 'connector'}: {cause(state['trace'])}")
    is_well = all(row[2] == _RUNNING for row in rows)
    return View(content, ("connector", "task", "state", "worker"), rows, 2, notes, is_well)


def cause(trace: str) -> str:
    """The error that a stack trace begins with, and the first one behind it."""
    lines = [line.strip() for line in trace.splitlines()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return "; ".join([lines[0], *causes[-1:]]) if lines else ""


def _list(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def look() -> View:
        names = sorted(connect.connectors())
        found = connect.expanded()
        rows = []
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
        return View(content, ("connector", "type", "class", "state", "running tasks"), rows)

    if arguments.watch:
        return watch(look, arguments)
    show(look(), arguments.output)
    return DONE


def _status(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def look() -> View:
        names = arguments.names or sorted(connect.connectors())
        found = {name: status_of(connect, name) for name in names}
        statuses = [status for status in found.values() if status is not None]
        view = status_view(statuses, statuses)
        absent = [name for name, status in found.items() if status is None] if arguments.names else []
        notes = [*view.notes, *(f"{name} does not exist, or has no status yet" for name in absent)]
        return replace(view, notes=notes, is_well=view.is_well and not absent)

    if arguments.watch:
        return watch(look, arguments)
    view = look()
    show(view, arguments.output)
    return DONE if view.is_well else REFUSED


def _config(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    config = masked(connect.config(arguments.name), show_secrets=arguments.show_secrets)
    show(View(config, ("setting", "value"), sorted(config.items())), arguments.output)
    return DONE


def _tasks(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    if not arguments.configs:
        status = connect.status(arguments.name)
        rows = status_view([status], None)
        tasks = [row[1:] for row in rows.rows if row[1]]
        show(View(status["tasks"], ("task", "state", "worker"), tasks, 1, rows.notes), arguments.output)
        return DONE
    found = connect.tasks(arguments.name)
    for each in found:
        each["config"] = masked(each["config"], show_secrets=arguments.show_secrets)
    settings = [
        (str(each["id"]["task"]), *setting) for each in found for setting in sorted(each["config"].items())
    ]
    show(View(found, ("task", "setting", "value"), settings, 2), arguments.output)
    return DONE


def _topics(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def reset(name: str) -> int:
        connect.reset_topics(name)
        say(f"{name}: topics forgotten")
        return DONE

    if arguments.reset:
        return for_each(arguments.names, reset)
    found: dict[str, list[str]] = {}

    def ask(name: str) -> int:
        found[name] = sorted(connect.topics(name))
        return DONE

    code = for_each(arguments.names, ask)
    rows = [(name, topic) for name, topics in found.items() for topic in topics]
    show(View(found, ("connector", "topic"), rows, 2), arguments.output)
    return code


def _states(status: ConnectorStateInfo) -> Iterator[tuple[str, RunState]]:
    """The connector's, under an empty text, then its tasks'."""
    yield "", status["connector"]
    yield from ((str(task["id"]), task) for task in sorted(status["tasks"], key=lambda task: task["id"]))
