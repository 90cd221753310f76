"""Draws what a run has: how large the clusters are, what their logs hold, and how the tasks copy."""

import itertools
import random
from dataclasses import replace
from enum import Enum
from typing import Final

from sparkmirror.domain.incidents import OnBadBatch
from tests.memory.source_records import BadKind
from tests.memory.stage import Shape
from tests.memory.transformed import Transforms


class Scenario(Enum):
    """The subject of a run."""

    CLUSTERS = "clusters"
    """Requests, brokers, leaders and tasks fail; no log loses anything."""
    LOSSES = "losses"
    """Logs lose records, and topics are replaced."""
    BAD_BATCHES = "bad batches"
    """Some batches can't be read, or the target refuses them."""
    TWO_WAY = "two-way"
    """A second flow goes back, and topics keep their names."""


_BAD: Final = list(itertools.product(BadKind, OnBadBatch))


def scenario_of(seed: int) -> Scenario:
    """So that any few seeds in a row have all."""
    return list(Scenario)[seed % len(Scenario)]


def shape_of(seed: int, rng: random.Random) -> Shape:
    """`rng` draws what the seed does not say."""
    scenario = scenario_of(seed)
    bad, on_bad_batch = None, OnBadBatch.FAIL
    if scenario is Scenario.BAD_BATCHES:
        bad, on_bad_batch = _BAD[seed // len(Scenario) % len(_BAD)]
    is_two_way = scenario is Scenario.TWO_WAY
    return Shape(
        partitions=rng.randint(1, 2 if is_two_way else 3),
        source_brokers=rng.randint(1, 2),
        target_brokers=rng.randint(1, 2 if is_two_way else 3),
        is_transactional=rng.random() < 0.35,
        transaction_version=rng.choice([1, 2, 2]),
        lag_max=rng.choice([0, 10, 100]),
        in_flight_max=rng.choice([1, 5, 5]),
        buffer_bytes=rng.choice([1 << 11, 1 << 16, 32 << 20]),
        is_lossy=scenario is Scenario.LOSSES,
        reads_committed=rng.random() < 0.5,
        is_compacted=rng.random() < 0.3,
        bad=bad,
        on_bad_batch=on_bad_batch,
        is_two_way=is_two_way,
        provenance_header=is_two_way and rng.random() < 0.2,
        is_fenced=rng.random() < 0.8,
    )


def preserving(shape: Shape, rng: random.Random) -> Shape:
    """The same with preserved offsets, as far as that goes together."""
    return replace(
        shape,
        preserves_offsets=True,
        source_start=rng.choice([0, 0, 1, 70, 3000]),
        written_max=rng.choice([6, 6, 120]),
        is_transactional=False,
        is_lossy=False,
        bad=None,
        on_bad_batch=OnBadBatch.FAIL,
        is_two_way=False,
        provenance_header=False,
        is_fenced=True,
    )


def transforming(shape: Shape, seed: int) -> Shape:
    """The same with transforms.

    A bad record may be one that they leave out: there is none. With preserved offsets a function must leave
    out the same records each time.
    """
    kinds = [each for each in Transforms if each is not Transforms.BY_CHANCE or not shape.preserves_offsets]
    return replace(
        shape,
        transforms=kinds[seed // len(Scenario) % len(kinds)],
        bad=None,
        on_bad_batch=OnBadBatch.FAIL,
        provenance_header=False,
    )
