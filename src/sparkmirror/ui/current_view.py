"""Makes the view about once a second, and only while it is asked for; all requests get the same one."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from sparkmirror import __version__
from sparkmirror.machine import machine_name
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.making import Node, view_of

_FRESH_S: Final = 0.8
"""Less than the time between the rounds of streams, so that each has a new one."""


def this_process() -> Node:
    """The process that is looked at where it is no node of a group."""
    return Node(machine_name(), __version__)


class CurrentView:
    """Has the current view. Thread-safe. `looks` may raise NotLeaderError: another node has the view."""

    def __init__(
        self,
        node: Callable[[], Node],
        looks: Callable[[], Sequence[ConnectorLook]],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._looks = looks
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._made: tuple[float, MirrorView] | None = None

    def get(self) -> MirrorView:
        with self._lock:
            now = self._clock()
            if self._made is None or now - self._made[0] >= _FRESH_S:
                before = None if self._made is None else self._made[1]
                self._made = None
                self._made = now, view_of(self._node(), self._looks(), self._wall_clock(), before)
            return self._made[1]
