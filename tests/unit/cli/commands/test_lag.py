from collections.abc import Mapping
from typing import Any

import pytest

from sparkmirror.cli.commands.lag import LagLimit, lag_of
from sparkmirror.storage.progress import PartitionState
from tests.support.mirror_looks import answers, look, source

FAILING = {"state": PartitionState.FAILED, "error": "no right to WRITE", "lag": 7}


def test_partitions_beyond_the_limit_are_listed_worst_first() -> None:
    lags = (5, None, 70, 0, 70)
    partitions = [look("orders", at, {"lag": lag}, lag_s=None) for at, lag in enumerate(lags)]
    (answer,) = answers(source(*partitions))
    lag = lag_of(answer, bool, LagLimit())
    assert [it.source.partition for it in lag.behind] == [2, 4, 0]
    assert [it.source.partition for it in lag_of(answer, bool, LagLimit(5)).behind] == [2, 4]
    assert [it.source.partition for it in lag.unknown] == [1]
    assert (lag.records, lag.exit_code) == (145, 1)


@pytest.mark.parametrize(
    ("limit", "lag_s", "reported", "is_kept"),
    [
        (LagLimit(5, 3.0), 2.0, {"lag": 7}, True),
        (LagLimit(5, 3.0), 9.0, {"lag": 7}, False),
        (LagLimit(5, 3.0), None, {"lag": 7}, False),
        (LagLimit(7, 3.0), 9.0, {"lag": 7}, True),
        (LagLimit(7, 3.0), None, {"lag": 7}, True),
        (LagLimit(5), 2.0, {"lag": 7}, False),
        (LagLimit(5, 3.0), 2.0, FAILING, False),
    ],
)
def test_of_two_limits_one_is_enough_unless_an_error_is_reported(
    limit: LagLimit, lag_s: float | None, reported: Mapping[str, Any], *, is_kept: bool
) -> None:
    ((partition,),) = (it.partitions for it in answers(source(look(reported=reported, lag_s=lag_s))))
    assert limit.is_kept(partition) is is_kept


def test_only_topics_that_are_wanted_count() -> None:
    (answer,) = answers(source(look("orders"), look("slow", 0, {"lag": 9}, lag_s=60.0)))
    assert lag_of(answer, "orders".__eq__, LagLimit()).exit_code == 0
    assert lag_of(answer, bool, LagLimit()).exit_code == 1
    assert lag_of(answer, "nothing".__eq__, LagLimit()).exit_code == 2
