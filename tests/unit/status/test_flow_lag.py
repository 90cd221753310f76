"""What a flow's lag says of partitions whose lag can't be told."""

from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.status.flow_lag import ABSENT, AHEAD, NOT_BEGUN, FlowLag, LagLimit, PartitionLag, _lag

FLOW = Flow(Alias("a"), Alias("b"))


def partition(number: int, records: int | None) -> PartitionLag:
    return PartitionLag(TopicPartition("orders", number), 100, None, records)


def test_zero_and_unknown_are_not_the_same() -> None:
    assert _lag(100, 100, is_left=False) == (0, None)
    assert _lag(100, 98, is_left=False) == (0, None)  # markers
    assert _lag(100, 40, is_left=True) == (60, None)
    assert _lag(100, None, is_left=True) == (None, NOT_BEGUN)
    assert _lag(100, 120, is_left=True) == (None, AHEAD)
    assert _lag(None, 100, is_left=False) == (None, ABSENT)
    assert _lag(RetriableError("orders-0: LEADER_NOT_AVAILABLE"), 100, is_left=False) == (
        None,
        "the source's end can't be read: orders-0: LEADER_NOT_AVAILABLE: does the broker that leads it run?",
    )


def test_partitions_beyond_the_limit_are_listed_worst_first() -> None:
    lag = FlowLag(
        FLOW, [partition(0, 5), partition(1, None), partition(2, 70), partition(3, 0), partition(4, 70)]
    )
    assert [each.source.partition for each in lag.beyond(LagLimit())] == [2, 4, 0]
    assert [each.source.partition for each in lag.beyond(LagLimit(5))] == [2, 4]
    assert [each.source.partition for each in lag.unknown] == [1]
    assert lag.records == 145


def test_of_two_limits_one_is_enough() -> None:
    young, old, unknown = (partition(0, 7)._replace(seconds=age) for age in (2.0, 9.0, None))
    limit = LagLimit(5, 3.0)
    assert [limit.is_kept(each) for each in (young, old, unknown)] == [True, False, False]
    assert [LagLimit(7, 3.0).is_kept(each) for each in (old, unknown)] == [True, True]
    assert not LagLimit(5).is_kept(young)
    assert not limit.is_kept(young._replace(why="no right to WRITE")), "what fails is not on its way"
