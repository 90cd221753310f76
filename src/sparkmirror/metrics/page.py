"""Renders the page that Prometheus scrapes: metrics of the running connectors and of this process."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from sparkmirror.metrics import exposition
from sparkmirror.metrics.detail import by_topic
from sparkmirror.metrics.exposition import CONTENT_TYPE, Heads, Written
from sparkmirror.metrics.families import families
from sparkmirror.metrics.family import Family
from sparkmirror.metrics.mbeans import mbeans
from sparkmirror.metrics.naming import Naming
from sparkmirror.metrics.readings import ConnectorReading, NodeReading
from sparkmirror.metrics.settings import MetricsSettings, default_settings

Page = tuple[str, bytes]
"""Content type and body."""

_FRESH_S = 1.0
"""Tasks report once a second: more frequent requests get the same page."""


class Metrics:
    """`readings` returns the running connectors'. Safe in any thread; frequent requests share a page."""

    def __init__(
        self,
        readings: Callable[[], Collection[ConnectorReading]],
        settings: MetricsSettings | None = None,
        node: Callable[[], NodeReading | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        known: Collection[str] | None = None,
    ) -> None:
        """`node` is what a node of a Connect group knows of itself.

        `known` names the only metrics whose values are known of these connectors; None for all.
        """
        self._known = known
        self._readings = readings
        self._settings = settings or default_settings()
        self._node = node
        self._naming = Naming(self._settings.name)
        self._heads = Heads()
        # Its own registry: the library's global one would show every mirror of the process at once.
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        self._clock = clock
        self._lock = threading.Lock()
        self._made: tuple[float, bytes] | None = None

    def page(self) -> Page:
        """Write Prometheus' text format. Raises ConfigError for a rule whose pattern takes too long."""
        with self._lock:
            now = self._clock()
            if self._made is None or now - self._made[0] >= _FRESH_S:
                text = exposition.page(self._metrics())
                self._made = now, text.encode() + generate_latest(self._process)
            return CONTENT_TYPE, self._made[1]

    def _metrics(self) -> Iterator[Written]:
        readings, node = self._readings(), self._node()
        if self._settings.by_topic:
            readings = by_topic(readings)
        yield self._heads.written(_BUILD)
        if self._known is None:
            yield from self._naming.metrics(mbeans(readings, node))
        for family in families(readings, node):
            if self._known is None or family.name in self._known:
                yield self._heads.written(family)
        self._heads.end_page()


_BUILD = Family(
    "sparkmirror_build_info", "1, with the version.", ("version",), [((version("sparkmirror"),), 1)]
)
