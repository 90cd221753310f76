"""Renders the page that Prometheus scrapes: metrics of the running connectors and of this process."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sparkmirror.metrics.families import Family, families
from sparkmirror.metrics.readings import ConnectorReading

Page = tuple[str, bytes]
"""Content type and body."""

_FRESH_S = 1.0
"""Tasks report once a second: more frequent requests get the same page."""


class Metrics:
    """`readings` returns the running connectors'. Safe in any thread; frequent requests share a page."""

    def __init__(
        self,
        readings: Callable[[], Collection[ConnectorReading]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Its own registry: the library's global one would show every mirror of the process at once.
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Connectors(readings))
        ProcessCollector(registry=self._registry)
        self._clock = clock
        self._lock = threading.Lock()
        self._made: tuple[float, bytes] | None = None

    def page(self) -> Page:
        """In Prometheus' text format."""
        with self._lock:
            now = self._clock()
            if self._made is None or now - self._made[0] >= _FRESH_S:
                self._made = now, generate_latest(self._registry)
            return CONTENT_TYPE_PLAIN_0_0_4, self._made[1]


class _Connectors(Collector):
    def __init__(self, readings: Callable[[], Collection[ConnectorReading]]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        yield _metric(
            Family(
                "sparkmirror_build_info",
                "1, with the version.",
                ("version",),
                [((version("sparkmirror"),), 1)],
            )
        )
        yield from map(_metric, families(self._readings()))


def _metric(family: Family) -> Metric:
    """Counters carry `_total` on their samples only, as the library wants it."""
    kind = "counter" if family.is_counter else "gauge"
    metric = Metric(
        family.name.removesuffix("_total") if family.is_counter else family.name, family.help, kind
    )
    for values, number in family.samples:
        metric.add_sample(family.name, dict(zip(family.labels, values, strict=True)), number)
    return metric
