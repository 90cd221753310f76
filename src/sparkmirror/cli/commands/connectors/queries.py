"""Shows connectors: the commands `list`, `status`, `config`, `tasks` and `topics`."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sparkmirror.cli.arguments import not_empty
from sparkmirror.cli.commands.connectors.rest_commands import (
    DONE,
    REFUSED,
    RestCommand,
    add_rest_command,
    print_line,
    run_for_each,
)
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.cli.commands.connectors.wait import status_of
from sparkmirror.cli.commands.connectors.watch import add_watch_arguments, watch
from sparkmirror.client.connect_objects import ConnectorStateInfo, RunState
from sparkmirror.client.connect_rest import ConnectRest
from sparkmirror.config.masking import masked

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
when all of it is RUNNING, else 1; a paused or stopped connector isn't RUNNING either.
--watch ends with Ctrl-C (or SIGTERM), and its exit code is that of the last poll.

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
The tasks of a connector and their states; with --configs their configurations.

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


def add_commands(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_rest_command(verbs, RestCommand("list", "all connectors, a line each", _LIST_HELP, _list))
    add_output_argument(parser)
    add_watch_arguments(parser)
    parser = add_rest_command(
        verbs, RestCommand("status", "states of connectors and their tasks", _STATUS_HELP, _status)
    )
    parser.add_argument("names", nargs="*", type=not_empty, metavar="NAME", help="a connector (default: all)")
    add_output_argument(parser)
    add_watch_arguments(parser)
    parser = add_rest_command(
        verbs, RestCommand("config", "the settings of a connector", _CONFIG_HELP, _config)
    )
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    add_secrets_argument(parser)
    add_output_argument(parser)
    parser = add_rest_command(verbs, RestCommand("tasks", "the tasks of a connector", _TASKS_HELP, _tasks))
    parser.add_argument("name", type=not_empty, metavar="NAME", help="the connector")
    parser.add_argument("--configs", action="store_true", help="their settings, not their states")
    add_secrets_argument(parser)
    add_output_argument(parser)
    parser = add_rest_command(
        verbs, RestCommand("topics", "the topics that connectors use", _TOPICS_HELP, _topics)
    )
    parser.add_argument("names", nargs="+", type=not_empty, metavar="NAME", help="a connector")
    parser.add_argument("--reset", action="store_true", help="clear the list of topics")
    add_output_argument(parser)


def add_secrets_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--show-secrets", action="store_true", help="passwords and the like too")


def status_view(statuses: Sequence[ConnectorStateInfo], content: Any) -> View:
    """A row for each connector and each task; below them the causes of failures."""
    rows, notes = [], []
    for status in statuses:
        name = status["name"]
        for task, state in _states(status):
            rows.append((name, task, state["state"], state.get("worker_id", "")))
            if state.get("trace"):
                notes.append(f"{name} {f'task {task}' if task else 'connector'}: {cause(state['trace'])}")
    is_healthy = all(row[2] == _RUNNING for row in rows)
    return View(content, ("connector", "task", "state", "worker"), rows, 2, notes, is_healthy)


def cause(trace: str) -> str:
    """The first line of a stack trace, and its root cause."""
    lines = [line.strip() for line in trace.splitlines()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return "; ".join([lines[0], *causes[-1:]]) if lines else ""


def _list(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def poll() -> View:
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
        return watch(poll, arguments)
    show(poll(), arguments.output)
    return DONE


def _status(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def poll() -> View:
        names = arguments.names or sorted(connect.connectors())
        found = {name: status_of(connect, name) for name in names}
        statuses = [status for status in found.values() if status is not None]
        view = status_view(statuses, statuses)
        absent = [name for name, status in found.items() if status is None] if arguments.names else []
        notes = [*view.notes, *(f"{name} does not exist, or has no status yet" for name in absent)]
        return replace(view, notes=notes, is_healthy=view.is_healthy and not absent)

    if arguments.watch:
        return watch(poll, arguments)
    view = poll()
    show(view, arguments.output)
    return DONE if view.is_healthy else REFUSED


def _config(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    config = connect.config(arguments.name)
    if not arguments.show_secrets:
        config = masked(config)
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
        if not arguments.show_secrets:
            each["config"] = masked(each["config"])
    settings = [
        (str(each["id"]["task"]), *setting) for each in found for setting in sorted(each["config"].items())
    ]
    show(View(found, ("task", "setting", "value"), settings, 2), arguments.output)
    return DONE


def _topics(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    def reset(name: str) -> int:
        connect.reset_topics(name)
        print_line(f"{name}: topics cleared")
        return DONE

    if arguments.reset:
        return run_for_each(arguments.names, reset)
    found: dict[str, list[str]] = {}

    def query(name: str) -> int:
        found[name] = sorted(connect.topics(name))
        return DONE

    code = run_for_each(arguments.names, query)
    rows = [(name, topic) for name, topics in found.items() for topic in topics]
    show(View(found, ("connector", "topic"), rows, 2), arguments.output)
    return code


def _states(status: ConnectorStateInfo) -> Iterator[tuple[str, RunState]]:
    """The connector's, under an empty text, then its tasks'."""
    yield "", status["connector"]
    yield from ((str(task["id"]), task) for task in sorted(status["tasks"], key=lambda task: task["id"]))
