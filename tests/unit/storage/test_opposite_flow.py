"""Tests what the opposite flow has said of the partitions that it may have copied."""

from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.domain.preserving import REFUSED
from sparkmirror.storage.opposite_flow import OppositeFlow
from sparkmirror.storage.progress import JobEpoch, PartitionProgress
from tests.support.progress_records import IDLE

ORDERS: Final = IDLE.source
COPIED: Final = replace(IDLE, position=7)
REFUSING: Final = replace(IDLE, error=f"{REFUSED}: orders-0: it holds others")


@pytest.mark.parametrize(
    ("reports", "copies"),
    [
        ([], None),
        ([IDLE], None),
        ([replace(IDLE, error="no leader")], None),
        ([COPIED], True),
        ([replace(COPIED, error=REFUSING.error)], True),
        ([replace(COPIED, source=TopicPartition("orders", 1))], None),
        ([REFUSING], False),
        ([replace(REFUSING, error=f"{REFUSED} yet: orders-0: it waits, too")], False),
        ([REFUSING, replace(COPIED, connector=ConnectorName("another"))], True),
    ],
)
def test_a_position_says_that_it_copies_and_a_refusal_that_it_can_not(
    reports: list[PartitionProgress], copies: bool | None
) -> None:
    assert OppositeFlow({(it.connector, it.source): it for it in reports}).copies(ORDERS) is copies


@pytest.mark.parametrize(
    ("job", "copies"),
    [
        (JobEpoch(IDLE.connector, 1), False),
        (JobEpoch(IDLE.connector, 2), None),
        (JobEpoch(IDLE.connector, 1, stopped=True), None),
    ],
)
def test_a_refusal_of_an_earlier_run_says_nothing_of_this_one(job: JobEpoch, copies: bool | None) -> None:
    opposite = OppositeFlow({(REFUSING.connector, ORDERS): REFUSING}, {job.connector: job})
    assert opposite.copies(ORDERS) is copies


def test_what_it_has_promoted_it_copies_no_more() -> None:
    assert OppositeFlow(promoted={"orders"}).copies(ORDERS) is False
    reports = {(COPIED.connector, ORDERS): COPIED}
    assert OppositeFlow(reports, promoted={"orders"}).copies(ORDERS), "it has copied it before"
