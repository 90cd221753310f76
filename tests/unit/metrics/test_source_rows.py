from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np
import pytest

from sparkmirror.domain.assignment import Assignment
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.latency import LatencyHistogram
from sparkmirror.metrics.looks import SourceLook
from sparkmirror.metrics.partition_table import Columns, PartitionTable, table_of
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState
from tests.support.progress_records import IDLE

SOURCES: Final = [TopicPartition(f"topic-{number % 3}", number // 3) for number in range(12)]
ASSIGNED: Final[Assignment] = (tuple(SOURCES[::2]), tuple(SOURCES[1::2]))
OF: Final = SourceLook(Flow(Alias("a"), Alias("b")), ConnectorName("MirrorSourceConnector"), "source")


def looked(meter: SourceMeter, now: float) -> PartitionTable:
    return table_of(meter.look(OF, ASSIGNED, now).partitions or ())


def next_report(before: PartitionProgress, random: Random) -> PartitionProgress:
    """More records, fewer after a restart, another lag, an error, or nothing new."""
    if random.random() < 0.1:
        before = replace(
            before, records=0, bytes=0, latency=LatencyHistogram({}), job_epoch=before.job_epoch + 1
        )
    records = before.records + random.choice((0, 0, 7))
    failure = random.choice((None, None, None, "away"))
    return replace(
        before,
        records=records,
        bytes=100 * records,
        position=(before.position or 0) + records - before.records,
        lag=random.choice((None, 0, 0, 5, 900)),
        latency=LatencyHistogram({3: records} if records else {}),
        state=PartitionState.RUNNING if failure is None else PartitionState.RETRYING,
        error=failure,
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_from_look_to_look_is_what_a_first_look_sees(seed: int) -> None:
    random = Random(seed)
    kept, history, now = SourceMeter(), [], 0.0
    known: Mapping[TopicPartition, PartitionProgress] = {it: replace(IDLE, source=it) for it in SOURCES}
    for _ in range(60):
        now += random.choice((1.0, 1.0, 10.0, 40.0))
        told = random.sample(SOURCES, random.randrange(len(SOURCES)))
        known = {**known, **{it: next_report(known[it], random) for it in told}}
        history.append(([known[it] for it in told], JobEpoch(OF.connector, 1), now))
        kept.take(*history[-1])
        fresh = SourceMeter()
        for each in history:
            fresh.take(*each)
        seen, made = looked(kept, now), looked(fresh, now)
        assert list(seen) == list(made)
        for name, *columns in zip(
            Columns._fields, seen.columns, made.columns, table_of([*seen]).columns, strict=True
        ):
            for column in columns[1:]:
                assert np.allclose(columns[0], column, equal_nan=True), name


def test_a_table_stays_as_it_is() -> None:
    meter = SourceMeter()
    meter.take([replace(IDLE, source=SOURCES[0], lag=5)], None, 1.0)
    before = looked(meter, 2.0)
    meter.take([replace(IDLE, source=SOURCES[0], lag=0)], None, 3.0)
    assert (looked(meter, 4.0).columns.lag[0], before.columns.lag[0]) == (0, 5)
    report = before[0].report
    assert report is not None
    assert report.lag == 5
