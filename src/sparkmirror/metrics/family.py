"""Defines `Family`, a metric with its samples."""

from collections.abc import Sequence
from typing import NamedTuple


class Family(NamedTuple):
    """A metric and its samples: the labels' values, in the order of `labels`, and a number."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], float]]

    @property
    def is_counter(self) -> bool:
        return self.name.startswith("sparkmirror_") and self.name.endswith("_total")
