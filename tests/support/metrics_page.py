"""Reads `/metrics` of a running mirror."""

from collections.abc import Mapping
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.support.mirror import Mirror

Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]
"""Samples by name: labels and value."""


class Page:
    """`/metrics` of a mirror, parsed by Prometheus' client library."""

    def __init__(self, url: str) -> None:
        self.url = url

    def read(self) -> Samples:
        with urlopen(self.url, timeout=10) as response:
            text = response.read().decode()
        found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found

    def by_partition(self, name: str, topic: str) -> dict[int, float]:
        """Return the values by partition of a topic on the target."""
        samples = self.read().get(name, [])
        return {int(of["partition"]): value for of, value in samples if of["topic"] == topic}

    def one(self, name: str, **labels: str) -> float | None:
        """Return the sample with these labels, None if there is none."""
        values = [value for of, value in self.read().get(name, []) if labels.items() <= of.items()]
        assert len(values) <= 1, f"{name} {labels}: {values}"
        return values[0] if values else None


def page_of(mirror: Mirror) -> Page:
    """The page of a mirror with `--metrics-port`, which is served before the mirror has started."""
    line = mirror.await_log("metrics are at http://")
    return Page(line.rpartition(" ")[2])
