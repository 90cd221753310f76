"""The lag in `/metrics` is that of `GET /mirror`, whatever the state: an unknown one has no sample."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import pytest

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.detail import by_topic
from sparkmirror.metrics.families import families
from sparkmirror.metrics.looks import ClusterLook, SourceLook
from sparkmirror.metrics.partition_table import table_of
from sparkmirror.metrics.readings import SourceReading
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.status.watched_table import watched_table
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState
from sparkmirror.storage.promotions import Promotion, Stage
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.words import Word
from tests.support.progress_records import progress

ORDERS: Final = TopicPartition("orders", 0)
QUIET: Final = TopicPartition("quiet", 0)
FLOW: Final = Flow(Alias("a"), Alias("b"))
NAME: Final = ConnectorName("MirrorSourceConnector")
AWAY: Final = ClusterLook(FLOW.source, False, 3.0, "Connection refused")
PROMOTED: Final = {"orders": Promotion(Stage.PROMOTED, 0, b"", {})}


def report(
    lag: int | None, error: str | None = None, state: PartitionState = PartitionState.RUNNING
) -> PartitionProgress:
    return replace(progress("orders-0", records=100, lag=0), lag=lag, error=error, state=state, job_epoch=1)


class Case(NamedTuple):
    """`reports` are taken a second apart, another partition's with each; the look is `after_s` later."""

    reports: list[PartitionProgress]
    word: Word
    records: int | None
    seconds: float | None
    after_s: float = 0.0
    job_epoch: int = 1
    clusters: tuple[ClusterLook, ...] = ()
    promoted: Mapping[str, Promotion] = {}


STANDBY: Final = report(7, "waits for a failback", PartitionState.STANDBY)
CASES: Final = {
    "caught up": Case([report(0), report(0)], Word.CAUGHT_UP, 0, 0.0),
    "behind": Case([report(0), report(7)], Word.FALLING_BEHIND, 7, 8.0, after_s=8.0),
    "no end of the source": Case([report(None)], Word.UNKNOWN, None, None),
    "standby": Case([STANDBY] * 9, Word.STANDBY, 0, 0.0, after_s=5.0),
    "standby whose task is silent": Case([STANDBY, STANDBY], Word.STANDBY, 0, 0.0, job_epoch=2),
    "standby, and no report is read": Case([STANDBY], Word.UNKNOWN, None, 60.0, after_s=60.0),
    "source away": Case([report(0)], Word.UNKNOWN, None, 0.0, clusters=(AWAY,)),
    "source away while behind": Case([report(0), report(7)], Word.UNKNOWN, None, 0.0, clusters=(AWAY,)),
    "target away": Case(
        [report(0), report(7)], Word.CAUGHT_UP, 7, 0.0, clusters=(AWAY._replace(alias=FLOW.target),)
    ),
    "no report is read": Case([report(0)], Word.UNKNOWN, None, 60.0, after_s=60.0),
    "retrying": Case(
        [report(0), report(0, "no leader", PartitionState.RETRYING)], Word.RETRYING, None, 3.0, 3.0
    ),
    "failed while behind": Case(
        [report(0), report(7, "too large", PartitionState.FAILED)], Word.ACTION_REQUIRED, 7, 3.0, 3.0
    ),
    "silent": Case([report(0)], Word.UNKNOWN, None, 0.0, after_s=9.0, job_epoch=2),
    "silent while behind": Case([report(0), report(7)], Word.UNKNOWN, 7, 38.0, after_s=9.0, job_epoch=2),
    "promoted": Case([report(7)], Word.PROMOTED, 0, 0.0, promoted=PROMOTED),
}


@pytest.mark.parametrize("name", CASES)
def test_metrics_have_the_lag_that_the_mirror_shows(name: str) -> None:
    case = CASES[name]
    look, reading = seen(case)
    (flow,) = view_of(Node("n", "1"), [look], 1000.0).flows
    topic = flow.topics.named("orders")
    assert topic is not None
    (partition,) = topic.partitions
    assert partition.state.word is case.word
    assert partition.lag == (case.records, case.seconds)
    expected = (None, None) if case.promoted else (case.records, case.seconds)
    assert samples(reading) == expected


@pytest.mark.parametrize("is_held_back", [False, True])
def test_a_topic_with_an_unknown_partition_has_no_lag_in_any_detail(*, is_held_back: bool) -> None:
    """The task has not reported it yet, or the target's topic can't be grown."""
    meter = SourceMeter()
    meter.take([report(0)], None, 0.0)
    cause = Cause(TroubleWord.NOT_GROWN, Subject.TOPIC, "no right")
    troubles = [Trouble(cause, "orders", partitions=(1, 2))] if is_held_back else []
    sources = (ORDERS,) if is_held_back else (ORDERS, TopicPartition("orders", 1))
    look = meter.look(SourceLook(FLOW, NAME, "source", troubles=troubles), (sources,), 0.0)
    (flow,) = view_of(Node("n", "1"), [look], 1000.0).flows
    topic = flow.topics.named("orders")
    assert topic is not None
    assert topic.lag.records is None
    reading = meter.reading(look)
    assert samples(reading)[0] == 0  # of the partition that is known
    (of_topic,) = by_topic([reading])
    assert isinstance(of_topic, SourceReading)
    assert samples(of_topic)[0] is None


def test_an_age_that_is_only_guessed_is_in_no_metric() -> None:
    """A look from Kafka alone did not find the oldest record that is missing."""
    behind, standby = report(7), replace(STANDBY, source=QUIET)
    meter = SourceMeter()
    meter.take([behind, standby], None, 0.0)
    look = meter.look(SourceLook(FLOW, NAME, "source"), ((ORDERS, QUIET),), 3.0)
    seen_from_outside = FlowLook([behind, standby], oldest_s={QUIET: 600.0})
    table = watched_table(table_of(look.partitions or ()), seen_from_outside, lambda _: None, 1.0)
    look = replace(look, partitions=table, is_observed=True)
    (flow,) = view_of(Node("n", "1"), [look], 1000.0).flows
    assert [it.lag for topic in flow.topics for it in topic.partitions] == [(7, None), (0, 0.0)]
    assert [(it.lag, it.lag_s) for it in meter.reading(look).partitions] == [(7, None), (0, 0.0)]


def test_the_history_of_a_flow_has_no_lag_of_what_stands_by() -> None:
    meter = SourceMeter()
    for now in range(0, 31, 10):
        meter.take([report(7), replace(STANDBY, source=QUIET)], None, now)
    points = meter.look(SourceLook(FLOW, NAME, "source"), ((ORDERS, QUIET),), 30.0).history
    assert {it.lag for it in points} == {7}
    meter.take([STANDBY], None, 700.0)
    (*_, last) = meter.look(SourceLook(FLOW, NAME, "source"), ((ORDERS,),), 700.0).history
    assert (last.lag, last.lag_s) == (0, 0.0)


def seen(case: Case) -> tuple[SourceLook, SourceReading]:
    """The look and the metrics of one moment."""
    meter = SourceMeter()
    for at, each in enumerate(case.reports):
        meter.take([each], JobEpoch(NAME, case.job_epoch), at)
    if case.job_epoch > 1:  # so long ago that it does not start any more
        meter.take([case.reports[-1]], JobEpoch(NAME, case.job_epoch), 30.0)
    now = (30.0 if case.job_epoch > 1 else len(case.reports) - 1) + case.after_s
    of = SourceLook(FLOW, NAME, "source", clusters=case.clusters, promoted=case.promoted)
    look = meter.look(of, ((ORDERS,),), now)
    return look, meter.reading(look)


def samples(reading: SourceReading) -> tuple[float | None, float | None]:
    """The partition's lag in records and in seconds."""
    of = {
        family.name: value
        for family in families([reading])
        for labels, value in family.samples
        if "orders" in "".join(labels)
    }
    return of.get("sparkmirror_lag_records"), of.get("sparkmirror_lag_seconds")
