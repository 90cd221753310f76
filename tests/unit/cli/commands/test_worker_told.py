from dataclasses import dataclass, field
from typing import cast

import pytest

from sparkmirror.cli.commands.worker import _Told
from sparkmirror.cli.service_manager import ServiceManager
from sparkmirror.connect.worker_node import WorkerNode
from sparkmirror.domain.connect import Health, NotLeaderError
from sparkmirror.ui.current_view import CurrentView

SERVES = Health(started=True, healthy=True, message="serves")
STARTS = Health(started=False, healthy=False, message="starts")


@dataclass
class Node:
    """A worker's node, and its herder."""

    turns: int = 0
    known: Health = SERVES

    @property
    def herder(self) -> "Node":
        return self

    def health(self) -> Health:
        return self.known


@dataclass
class View:
    leader: str | None = None
    words: list[str] = field(default_factory=list)

    def get(self) -> "View":
        if self.leader is not None or not self.words:
            raise NotLeaderError(self.leader)
        return self


class Manager:
    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []

    def turn(self, status: object, *, is_ready: bool) -> None:
        assert callable(status)
        self.told.append((status(), is_ready))


def told(node: Node, view: View) -> tuple[_Told, list[tuple[str, bool]]]:
    manager = Manager()
    parts = cast("WorkerNode", node), cast("ServiceManager", manager), cast("CurrentView", view)
    return _Told(*parts), manager.told


def test_the_thread_that_waits_says_nothing_while_the_nodes_own_thread_makes_no_turn() -> None:
    node = Node()
    telling, messages = told(node, View())
    telling.turn()
    assert messages == []
    node.turns = 1
    telling.turn()
    telling.turn()
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("known", "view", "message"),
    [
        (STARTS, View(), ("starts", False)),
        (SERVES, View(), ("serves", True)),
        (SERVES, View("http://other:8083"), ("the leader is http://other:8083", True)),
        (SERVES, View(words=["A->B: caught up", "B->A: paused"]), ("A->B: caught up; B->A: paused", True)),
    ],
)
def test_a_status_is_the_leaders_flows_or_how_the_node_is(
    known: Health, view: View, message: tuple[str, bool]
) -> None:
    telling, messages = told(Node(1, known), view)
    telling.turn()
    assert messages == [message]
