"""Records of the progress topic that end a task or change its rate limits."""

from collections.abc import Callable

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.copy.copy_plan import StatePlan, TaskPlan
from sparkmirror.copy.task.job_watch import JobWatch
from sparkmirror.copy.task.outcomes import EndReason
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.storage.progress import Driver, FlowLimits, JobEpoch, StateLost

OURS = ConnectorName("MirrorSourceConnector")
DRIVER = Driver("here", 7, 1000.5)
CLUSTER = ConnectionSettings((("b", 9092),))


class Tail(TopicTail):
    """Returns the records that a test has set."""

    def __init__(self, records: list[LogRecord]) -> None:
        self.records = records

    def poll(self, timeout_s: float) -> list[LogRecord]:  # noqa: ARG002 - nothing to wait for
        return self.records


PLAN = TaskPlan(
    flow=Flow(Alias("a"), Alias("b")),
    connector=OURS,
    task=0,
    job_epoch=5,
    announced_at=0,
    partitions=(),
    consumer=ConsumerSettings(CLUSTER),
    producer=ProducerSettings(CLUSTER),
    state=StatePlan(CLUSTER, "positions", "progress"),
    offset_syncs=None,
    driver=DRIVER,
)
"""The plan of copy job 5."""


def verdict(*records: LogRecord, on_limits: Callable[[RateLimits], None] | None = None) -> EndReason | None:
    """Return the verdict on copy job 5."""
    return JobWatch(PLAN, lambda _: None, on_limits)._read(Tail(list(records)))


def said(
    number: int, *, stopped: bool = False, connector: str = OURS, driver: Driver | None = None
) -> LogRecord:
    return JobEpoch(ConnectorName(connector), number, 1, stopped, driver=driver).to_record()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (said(5), None),
        (said(4), None),
        (said(4, stopped=True), None),
        (said(5, stopped=True), EndReason.STOPPED),
        (said(5, driver=DRIVER), None),
        (said(5, driver=DRIVER, stopped=True), EndReason.STOPPED),
        (said(5, driver=DRIVER._replace(pid=8)), EndReason.SUPERSEDED),
        (said(5, driver=DRIVER._replace(since=1001.5)), EndReason.SUPERSEDED),
        (said(4, driver=DRIVER._replace(pid=8)), None),
        (said(6), EndReason.SUPERSEDED),
        (said(6, stopped=True), EndReason.SUPERSEDED),
        (said(6, connector="AnotherConnector"), None),
        (LogRecord(b'["progress","MirrorSourceConnector","t",0]', b"{}"), None),
        (LogRecord(b'["generation","MirrorSourceConnector"]', None), None),
        (FlowLimits(OURS, RateLimits(5)).to_record(), None),
        (LogRecord(None, None), None),
    ],
)
def test_a_newer_generation_or_its_own_stop_ends_a_task(record: LogRecord, reason: EndReason | None) -> None:
    assert verdict(record) is reason


def test_the_first_that_counts_decides() -> None:
    assert verdict(said(5), said(5, stopped=True), said(6)) is EndReason.STOPPED


def test_nothing_new_ends_nothing() -> None:
    assert verdict() is None


def test_every_change_of_its_own_limits_is_told_in_order() -> None:
    heard: list[RateLimits] = []
    others = ConnectorName("AnotherConnector")
    said_limits = [
        FlowLimits(connector, limits).to_record()
        for connector, limits in ((OURS, RateLimits(5)), (others, RateLimits(6)), (OURS, NO_LIMITS))
    ]
    assert verdict(*said_limits, said(5, stopped=True), on_limits=heard.append) is EndReason.STOPPED
    assert heard == [RateLimits(5), NO_LIMITS]


@pytest.mark.parametrize(("connector", "heard"), [(OURS, 1), (ConnectorName("another"), 0)])
def test_a_loss_of_state_comes_before_the_end_that_follows(connector: ConnectorName, heard: int) -> None:
    told: list[str] = []
    watch = JobWatch(PLAN, lambda _: None, None, lambda: told.append("lost"))
    records = [StateLost(connector).to_record(), said(6, driver=DRIVER)]
    assert watch._read(Tail(records)) is EndReason.SUPERSEDED
    assert told == ["lost"] * heard
