import numpy as np

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Motion
from sparkmirror.metrics.partition_table import Columns, table_of
from sparkmirror.status.observed_table import observed_of, with_observed
from tests.support.mirror_looks import behind, look, report

OWN, JAVAS = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_of_java_nothing_is_told_that_kafka_does_not_tell() -> None:
    table = table_of([look(), behind("orders", 1, 900, closed=5)])
    observed = observed_of(
        [OWN, JAVAS], {OWN: report(OWN, task=3)}, {JAVAS: 20.0}, lambda _: Motion(60.0, 40)
    )
    seen = with_observed(table, observed, 2.5)
    own, javas = seen
    assert (own.task, own.lag_s, own.motion, own.slack_s) == (3, 0.0, None, 0.0)
    assert (javas.task, javas.byte_rate, javas.latencies) == (None, None, None)
    assert (javas.lag_s, javas.motion, javas.slack_s) == (22.5, Motion(60.0, 40), 60.0)
    for name, told, alone in zip(Columns._fields, seen.columns, table_of(list(seen)).columns, strict=True):
        assert np.array_equal(told, alone, equal_nan=True), name
    assert list(seen.latencies()) == [own.latencies]
