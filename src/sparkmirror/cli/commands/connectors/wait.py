"""Waits until connectors have the wanted state, or have settled in another one.

Connect responds before it acts, so a status may be outdated: a state counts once it has lasted for a moment.
"""

from collections.abc import Collection
from http import HTTPStatus
from typing import Final, NamedTuple

from sparkmirror.client.connect_objects import ConnectorStateInfo
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest

_POLL_S: Final = 0.5
_RUNNING_LASTS_S: Final = 1.0
_GONE_LASTS_S: Final = 1.0
"""A connector that is deleted while it starts may get a status once more."""
_NO_TASKS_LAST_S: Final = 3.0
"""A connector gets its tasks after it has started; one without anything to copy never gets any."""
_UNWANTED_LASTS_S: Final = 3.0
_SETTLED: Final = frozenset({"FAILED", "PAUSED", "STOPPED"})
"""States that no connector leaves by itself."""
GONE: Final = "gone"


class WaitResult(NamedTuple):
    """The last status of a connector; `why` is the reason why it isn't as wanted, None if it is."""

    name: str
    status: ConnectorStateInfo | None
    why: str | None


class _Observation(NamedTuple):
    """The result of one poll, and how long it has to last until it counts."""

    is_reached: bool
    lasts_s: float
    why: str


class StateWait:
    """Waits for connectors and their tasks to be RUNNING, or to be GONE."""

    def __init__(self, connect: ConnectRest, wanted: str, timeout_s: float) -> None:
        self._connect = connect
        self._wanted = wanted
        self._timeout_s = timeout_s

    def results(self, names: Collection[str]) -> list[WaitResult]:
        """Wait, and return the results in the order of the names."""
        deadline = self._connect.clock() + self._timeout_s
        results: dict[str, WaitResult] = {}
        since: dict[str, tuple[_Observation, float]] = {}
        while True:
            for name in (name for name in names if name not in results):
                status = status_of(self._connect, name)
                observed = observation(status, self._wanted)
                now = self._connect.clock()
                before, first_at = since.get(name, (observed, now))
                if before != observed:
                    first_at = now
                since[name] = (observed, first_at)
                if now - first_at >= observed.lasts_s:
                    results[name] = WaitResult(name, status, None if observed.is_reached else observed.why)
                elif now >= deadline:
                    results[name] = WaitResult(name, status, f"{observed.why} after {self._timeout_s:g} s")
            if len(results) == len(names):
                return [results[name] for name in names]
            self._connect.sleep(_POLL_S)


def status_of(connect: ConnectRest, name: str) -> ConnectorStateInfo | None:
    """Return a connector's status, None while it or its status does not exist."""
    try:
        return connect.status(name)
    except ConnectRefusedError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def observation(status: ConnectorStateInfo | None, wanted: str) -> _Observation:
    if status is None:
        lasts_s = _GONE_LASTS_S if wanted == GONE else float("inf")
        return _Observation(wanted == GONE, lasts_s, "does not exist")
    if wanted == GONE:
        return _Observation(is_reached=False, lasts_s=float("inf"), why="is still there")
    state = status["connector"]["state"]
    others = [task for task in status["tasks"] if task["state"] != wanted]
    if state == wanted and not others:
        lasts_s = _RUNNING_LASTS_S if status["tasks"] else _NO_TASKS_LAST_S
        return _Observation(is_reached=True, lasts_s=lasts_s, why=state)
    about = [] if state == wanted else [f"the connector is {state}"]
    about += [f"task {task['id']} is {task['state']}" for task in others]
    is_settled = state in _SETTLED or any(task["state"] == "FAILED" for task in others)
    lasts_s = _UNWANTED_LASTS_S if is_settled else float("inf")
    return _Observation(is_reached=False, lasts_s=lasts_s, why=", ".join(about))
