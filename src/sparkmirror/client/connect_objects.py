"""Declares the JSON objects of Connect's REST API."""

from typing import NotRequired, TypedDict


class RunState(TypedDict):
    """The state of a connector or task, and its worker; `trace` is present when it failed."""

    state: str
    worker_id: str
    trace: NotRequired[str]


class TaskState(RunState):
    id: int


class ConnectorStateInfo(TypedDict):
    name: str
    connector: RunState
    tasks: list[TaskState]
    type: NotRequired[str]


class TaskId(TypedDict):
    connector: str
    task: int


class ConnectorInfo(TypedDict):
    name: str
    config: dict[str, str]
    tasks: list[TaskId]
    type: NotRequired[str]


class Expanded(TypedDict):
    """A connector in a list of all."""

    status: ConnectorStateInfo
    info: ConnectorInfo
