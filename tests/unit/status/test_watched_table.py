from dataclasses import replace

import numpy as np
import pytest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Motion
from sparkmirror.metrics.partition_table import Columns, table_of
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.status.watched_table import watched_table
from sparkmirror.view.conditions import CONDITIONS, Situation, conditions_of
from sparkmirror.view.words import Word
from tests.support.mirror_looks import behind, look, report

OWN, JAVAS = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_of_java_nothing_is_told_that_kafka_does_not_tell() -> None:
    table = table_of([look(), behind("orders", 1, 900, closed=5)])
    stored = [report(JAVAS, position=11)]
    flow = FlowLook(stored, oldest_s={JAVAS: 20.0}, reports={OWN: report(OWN, task=3)})
    seen = watched_table(table, flow, lambda _: Motion(60.0, 40), 2.5)
    own, javas = seen
    assert (own.task, own.lag_s, own.motion, own.slack_s) == (3, 0.0, None, 2.5)
    assert (javas.task, javas.byte_rate, javas.latencies) == (None, None, None)
    assert (javas.lag_s, javas.motion, javas.slack_s) == (22.5, Motion(60.0, 40), 60.0)
    for name, told, alone in zip(Columns._fields, seen.columns, table_of(list(seen)).columns, strict=True):
        assert np.array_equal(told, alone, equal_nan=True), name
    assert list(seen.latencies()) == [own.latencies]


@pytest.mark.parametrize(("position", "word"), [(11, Word.CAUGHT_UP), (None, Word.CATCHING_UP)])
def test_a_partition_without_a_stored_position_has_not_caught_up(position: int | None, word: Word) -> None:
    """Java stores positions each minute; a mirror that has just started has stored none."""
    table = table_of([behind("orders", 1, 100, closed=0)])
    flow = FlowLook([report(JAVAS, position=position)], oldest_s={JAVAS: 20.0})
    columns = watched_table(table, flow, lambda _: None, 0.0).columns
    (condition,) = conditions_of(Situation(columns))
    assert CONDITIONS[condition].word is word


@pytest.mark.parametrize(("lag_s", "known_s"), [(0.0, None), (5.0, None), (6.0, 6.0)])
def test_records_whose_age_is_not_known_do_not_count_as_new(lag_s: float, known_s: float | None) -> None:
    table = table_of([look(reported={"lag": 7}, lag_s=lag_s)])
    (partition,) = watched_table(table, FlowLook([], reports={OWN: report(OWN)}), lambda _: None, 0.0)
    assert partition.lag_s == known_s


def test_without_lag_no_record_has_an_age() -> None:
    flow = replace(FlowLook([]), reports={OWN: report(OWN)})
    (partition,) = watched_table(table_of([look()]), flow, lambda _: None, 3.0)
    assert partition.lag_s == 0.0


def test_the_partitions_of_a_throttled_task_are_told_as_such() -> None:
    table = table_of([behind("orders", 0, 900, closed=0), behind("orders", 1, 900, closed=0)])
    reports = {OWN: report(OWN, task=3), JAVAS: report(JAVAS, task=4)}
    flow = FlowLook([], reports=reports, throttled={3: (0.0, 0.83)})
    own, other = watched_table(table, flow, lambda _: None, 0.0)
    assert (own.source_throttled, own.target_throttled) == (0.0, 0.83)
    assert (other.source_throttled, other.target_throttled) == (0.0, 0.0)
