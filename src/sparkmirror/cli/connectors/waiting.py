"""`--wait`: until connectors are what they were asked to be, or are surely not going to be.

Connect answers before it acts, so a status may still tell of the time before: what ends the waiting has to
last for a moment.
"""

import argparse
from collections.abc import Collection
from http import HTTPStatus
from typing import Final, NamedTuple

from sparkmirror.cli.arguments import positive
from sparkmirror.client.connect_objects import ConnectorStateInfo
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest

_LOOK_EVERY_S: Final = 0.5
_RUNNING_LASTS_S: Final = 1.0
_NO_TASKS_LAST_S: Final = 3.0
"""A connector gets its tasks after it has started; one without anything to copy never gets any."""
_AMISS_LASTS_S: Final = 3.0
_SETTLED: Final = frozenset({"FAILED", "PAUSED", "STOPPED"})
"""States that no connector leaves by itself."""
GONE: Final = "gone"


class Ending(NamedTuple):
    """What became of a connector; `why` says what isn't as it has to be, None if all is."""

    name: str
    status: ConnectorStateInfo | None
    why: str | None


class _Sight(NamedTuple):
    """What a look shows, and how long it has to last until it counts."""

    is_reached: bool
    lasts_s: float
    why: str


class Waiting:
    """For connectors to reach one state, a task's too: RUNNING, PAUSED, STOPPED, or GONE."""

    def __init__(self, connect: ConnectRest, wanted: str, timeout_s: float) -> None:
        self._connect = connect
        self._wanted = wanted
        self._timeout_s = timeout_s

    def until_there(self, names: Collection[str]) -> list[Ending]:
        """In the order of the names."""
        deadline = self._connect.clock() + self._timeout_s
        endings: dict[str, Ending] = {}
        since: dict[str, tuple[_Sight, float]] = {}
        while True:
            for name in (name for name in names if name not in endings):
                status = status_of(self._connect, name)
                sight = seen(status, self._wanted)
                now = self._connect.clock()
                before, began = since.get(name, (sight, now))
                if before != sight:
                    began = now
                since[name] = (sight, began)
                if now - began >= sight.lasts_s:
                    endings[name] = Ending(name, status, None if sight.is_reached else sight.why)
                elif now >= deadline:
                    endings[name] = Ending(name, status, f"{sight.why} after {self._timeout_s:g} s")
            if len(endings) == len(names):
                return [endings[name] for name in names]
            self._connect.sleep(_LOOK_EVERY_S)


def add_wait_arguments(parser: argparse.ArgumentParser, until: str) -> None:
    parser.add_argument("--wait", action="store_true", help=f"until {until}")
    add_timeout_argument(parser)


def add_timeout_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=positive, default=60, metavar="SECONDS", help="how long to wait (%(default)s)"
    )


def status_of(connect: ConnectRest, name: str) -> ConnectorStateInfo | None:
    """None as long as the connector, or a status of it, does not exist."""
    try:
        return connect.status(name)
    except ConnectRefusedError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def seen(status: ConnectorStateInfo | None, wanted: str) -> _Sight:
    """Pure."""
    if status is None:
        return _Sight(wanted == GONE, 0.0 if wanted == GONE else float("inf"), "does not exist")
    if wanted == GONE:
        return _Sight(is_reached=False, lasts_s=float("inf"), why="is still there")
    state = status["connector"]["state"]
    others = [task for task in status["tasks"] if task["state"] != wanted]
    if state == wanted and not others:
        has_tasks = bool(status["tasks"]) or wanted != "RUNNING"
        lasts_s = _RUNNING_LASTS_S if has_tasks else _NO_TASKS_LAST_S
        return _Sight(is_reached=True, lasts_s=lasts_s, why=state)
    about = [] if state == wanted else [f"the connector is {state}"]
    about += [f"task {task['id']} is {task['state']}" for task in others]
    is_settled = state in _SETTLED - {wanted} or any(task["state"] == "FAILED" for task in others)
    lasts_s = _AMISS_LASTS_S if is_settled else float("inf")
    return _Sight(is_reached=False, lasts_s=lasts_s, why=", ".join(about))
