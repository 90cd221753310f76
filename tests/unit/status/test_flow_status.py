from collections.abc import Mapping
from dataclasses import replace

import pytest

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.status.flow_lag import FlowLag, PartitionLag
from sparkmirror.status.flow_status import FlowState, FlowStatus
from sparkmirror.storage.progress import JobEpoch, PartitionProgress, PartitionState
from tests.support.progress_records import IDLE

FLOW = Flow(Alias("west"), Alias("east"))
ORDERS = TopicPartition("orders", 0)
EVEN = FlowLag(FLOW, [PartitionLag(ORDERS, 10, 10, 0)])
BEHIND = FlowLag(FLOW, [PartitionLag(ORDERS, 10, 3, 7)])
UNKNOWN = FlowLag(FLOW, [PartitionLag(ORDERS, 10, None, None, "not begun")])
WELL = FlowStatus(EVEN, heartbeat_age_s=0.5, report_age_s=0.8)
STOPPED = JobEpoch(ConnectorName("MirrorSourceConnector"), 3, stopped=True)


def reported(**errors: str) -> Mapping[TopicPartition, PartitionProgress]:
    """Reports by the states' names, each of a partition of its own."""
    return {
        TopicPartition("orders", at): replace(IDLE, state=PartitionState(state), error=error)
        for at, (state, error) in enumerate(errors.items())
    }


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (WELL, FlowState.CAUGHT_UP),
        (replace(WELL, lag=BEHIND), FlowState.CATCHING_UP),
        (replace(WELL, lag=BEHIND, heartbeats_topic="orders"), FlowState.CAUGHT_UP),
        (replace(WELL, lag=UNKNOWN), FlowState.UNKNOWN),
        (replace(WELL, lag=BEHIND, reports=reported(RETRYING="away")), FlowState.RETRYING),
        (replace(WELL, reports=reported(RETRYING="away", FAILED="no right")), FlowState.ACTION_REQUIRED),
        (
            replace(WELL, heartbeat_age_s=60.0, report_age_s=60.0, reports=reported(FAILED="x")),
            FlowState.NOT_RUNNING,
        ),
        (replace(WELL, job=STOPPED, heartbeat_age_s=3.1), FlowState.NOT_RUNNING),
        (replace(WELL, job=STOPPED), FlowState.CAUGHT_UP),
        (replace(WELL, heartbeat_age_s=None, report_age_s=None), FlowState.NOT_RUNNING),
    ],
)
def test_the_worst_that_holds_is_the_state(status: FlowStatus, state: FlowState) -> None:
    assert status.state is state
    assert status.is_well is (state in (FlowState.CAUGHT_UP, FlowState.CATCHING_UP))


def test_either_sign_of_life_is_enough() -> None:
    assert replace(WELL, heartbeat_age_s=None).is_running
    assert replace(WELL, report_age_s=None).is_running, "as Java's"
    assert replace(WELL, report_age_s=500.0).is_running, "an idle mirror has nothing to report"


def test_rare_heartbeats_are_waited_for() -> None:
    rare = replace(WELL, heartbeat_age_s=100.0, report_age_s=None, heartbeat_interval_s=60.0)
    assert rare.is_running
    assert replace(rare, heartbeat_age_s=181.0).is_running is False


def test_a_clock_that_is_ahead_tells_nothing() -> None:
    """For as long as it is ahead, a dead mirror's last heartbeat would look new."""
    ahead = replace(WELL, heartbeat_age_s=-3600.0, report_age_s=None)
    assert ahead.is_running is None
    assert replace(ahead, heartbeat_age_s=-2.0).is_running
    assert replace(ahead, job=STOPPED).is_running is None
    assert replace(ahead, report_age_s=1.0).is_running


def test_without_heartbeats_and_reports_nobody_can_tell() -> None:
    silent = FlowStatus(BEHIND, heartbeat_interval_s=float("inf"))
    assert silent.is_running is None
    assert silent.state is FlowState.CATCHING_UP
    assert replace(silent, report_age_s=500.0).is_running is None, "nothing may have changed since"
    assert replace(silent, report_age_s=1.0).is_running
