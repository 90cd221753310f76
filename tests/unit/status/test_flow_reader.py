from sparkmirror.domain.errors import RetriableError
from sparkmirror.setup.topic_explanation import AHEAD
from sparkmirror.status.flow_reader import ABSENT, NOT_BEGUN, lag_of


def test_a_lag_of_zero_and_an_unknown_one_are_not_the_same() -> None:
    assert lag_of(100, 100, is_left=False) == (0, None)
    assert lag_of(100, 98, is_left=False) == (0, None)  # markers
    assert lag_of(100, 40, is_left=True) == (60, None)
    assert lag_of(100, None, is_left=True) == (None, NOT_BEGUN)
    assert lag_of(100, 120, is_left=True) == (None, AHEAD)
    assert lag_of(None, 100, is_left=False) == (None, ABSENT)
    assert lag_of(RetriableError("orders-0: LEADER_NOT_AVAILABLE"), 100, is_left=False) == (
        None,
        "the source's end can't be read: orders-0: LEADER_NOT_AVAILABLE: does the broker that leads it run?",
    )
