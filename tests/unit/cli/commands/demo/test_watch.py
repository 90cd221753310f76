import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from sparkmirror.cli.commands.demo.dashboard import Dashboard
from sparkmirror.cli.commands.demo.throughput import Snapshot
from sparkmirror.cli.commands.demo.watch import Progress, Watch, has_begun, has_reached
from sparkmirror.domain.errors import RetriableError, SparkmirrorError
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.support.progress_records import progress

ORDERS = TopicPartition("orders", 0)


class Reader:
    """Time passes with each poll for reports, one at a time; the last one stays."""

    def __init__(self, reports: Sequence[PartitionProgress]) -> None:
        self.reports = list(reports)
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def poll(self, timeout_s: float) -> Mapping[tuple[ConnectorName, TopicPartition], PartitionProgress]:
        self.now += timeout_s
        report = self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]
        return {(report.connector, report.source): report}


def watch(reader: Reader, out: io.StringIO, check: Callable[[], None] = lambda: None) -> Watch:
    dashboard = Dashboard(Console(file=out, width=200))
    return Watch(reader.poll, ["orders"], dashboard, check, reader.clock)


def snapshot(its: PartitionProgress) -> Snapshot:
    return {its.source: its}


def test_ends_when_the_condition_holds() -> None:
    reader = Reader([progress("orders-0"), progress("orders-0"), progress("orders-0", records=5)])

    assert watch(reader, io.StringIO()).until(has_begun, "waiting", 60)
    assert reader.now == 1.5


def test_a_topic_that_has_no_leader_yet_is_waited_for() -> None:
    reader = Reader([progress("orders-0", records=5)])
    answers = [RetriableError("no leader"), None]

    def poll(timeout_s: float) -> Progress:
        if (error := answers.pop(0)) is not None:
            raise error
        return reader.poll(timeout_s)

    dashboard = Dashboard(Console(file=io.StringIO(), width=200))
    assert Watch(poll, ["orders"], dashboard, lambda: None, reader.clock).until(has_begun, "waiting", 60)


def test_gives_up_at_the_deadline_which_is_visible() -> None:
    out = io.StringIO()

    assert not watch(Reader([progress("orders-0")]), out).until(has_begun, "waiting", 8)
    assert "waiting: 4 of 8 s" in out.getvalue()


def test_without_a_terminal_a_line_every_few_seconds_is_enough() -> None:
    out = io.StringIO()

    watch(Reader([progress("orders-0", lag=3)]), out).until(lambda _: False, "live", 20)

    assert 4 <= len(out.getvalue().splitlines()) <= 6
    assert "lag 3" in out.getvalue()


def test_a_failed_partition_ends_the_demo() -> None:
    refused = replace(progress("orders-0"), state=PartitionState.FAILED, error="RECORD_TOO_LARGE")

    with pytest.raises(SparkmirrorError, match="orders-0 is not mirrored: RECORD_TOO_LARGE"):
        watch(Reader([refused]), io.StringIO()).until(has_begun, "waiting", 60)


def test_a_mirror_that_ended_ends_the_demo() -> None:
    def ended() -> None:
        raise SparkmirrorError("ended")

    with pytest.raises(SparkmirrorError, match="ended"):
        watch(Reader([progress("orders-0")]), io.StringIO(), ended).until(has_begun, "waiting", 60)


def test_other_topics_do_not_count() -> None:
    reader = Reader([progress("heartbeats-0", records=9)])

    assert not watch(reader, io.StringIO()).until(has_begun, "waiting", 2)


def test_the_end_is_reached_when_the_last_record_is_mirrored_and_no_lag_is_left() -> None:
    assert has_reached(snapshot(progress("orders-0", records=10)), {ORDERS: 10})
    assert not has_reached(snapshot(progress("orders-0", records=9)), {ORDERS: 10})
    assert not has_reached(snapshot(progress("orders-0", records=10, lag=1)), {ORDERS: 10})
    assert not has_reached(snapshot(progress("orders-0")), {ORDERS: 1})
    assert not has_reached({}, {ORDERS: 1})


def test_an_empty_partition_needs_no_progress() -> None:
    assert has_reached({}, {ORDERS: 0})
