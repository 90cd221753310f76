"""Serves the REST API in this process, over a herder of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from sparkmirror.clusters.ports import HOST
from sparkmirror.config.properties import Properties
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.app import Node, connect_app
from sparkmirror.connect.rest.connections import Limits
from sparkmirror.connect.rest.forwarding import LEADER_FOUND_S
from sparkmirror.connect.rest.responses import Metrics
from sparkmirror.connect.rest.rest_settings import RestSettings, rest_settings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.ui.current_view import CurrentView
from tests.support.logger_levels import levels_restored
from tests.support.memory_herder import MemoryHerder


class TimeLimits(NamedTuple):
    """A server's limits that tests shorten; by default those of the product."""

    connections: Limits = Limits()
    leader_found_s: float = LEADER_FOUND_S


_USUAL: Final = TimeLimits()


def settings(**more: str) -> RestSettings:
    """Return settings of a worker on a free port of this machine; `_` in keys means a dot."""
    changes = {key.replace("_", "."): value for key, value in more.items()}
    return rest_settings(Properties({"listeners": f"http://{HOST}:0", **changes}))


@contextmanager
def serving(
    herder: MemoryHerder,
    rest: RestSettings | None = None,
    metrics: Metrics | None = None,
    *,
    view: CurrentView | None = None,
    limits: TimeLimits = _USUAL,
) -> Iterator[str]:
    """Return its URL without a trailing slash."""
    with server(herder, rest or settings(), metrics, view=view, limits=limits) as started:
        yield started.advertised_url.rstrip("/")


@contextmanager
def server(
    herder: MemoryHerder,
    rest: RestSettings,
    metrics: Metrics | None = None,
    *,
    view: CurrentView | None = None,
    limits: TimeLimits = _USUAL,
) -> Iterator[RestServer]:
    """Levels that requests set are those of this process's loggers, for as long as it serves."""
    started = RestServer(rest, limits.connections)
    started.bind()
    with levels_restored():
        try:
            node = Node(herder, LogLevels(), metrics, view)
            started.start(connect_app(node, rest, leader_found_s=limits.leader_found_s))
            yield started
        finally:
            started.stop()
