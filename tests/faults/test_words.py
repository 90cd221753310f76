"""The check of states knows since when the target lacks what the source has."""

import pytest

from tests.faults.words import Ends, missing_since


@pytest.mark.parametrize(
    ("ends", "since"),
    [
        ([(1, 10, 10)], None),
        ([(1, 10, 10), (2, 20, 20), (3, 30, 30)], None),
        ([(1, 10, 10), (2, 20, 10), (3, 30, 10)], 2),
        ([(1, 10, 8), (2, 10, 8), (3, 12, 8), (4, 13, 8)], 3),
        ([(1, 10, 10), (2, 20, 10), (3, 20, 20), (4, 20, 20)], None),
        ([(1, 10, 10), (2, 20, 10), (3, 30, 11), (4, 40, 11)], 4),
        ([(1, 10, 9), (2, 10, 9)], None),
    ],
    ids=["one look", "flows", "stands", "grows later", "idle", "moves and stands", "a marker more"],
)
def test_what_came_before_the_target_stood_still_may_be_there(
    ends: list[tuple[float, int, int]], since: float | None
) -> None:
    assert missing_since([Ends(*each) for each in ends]) == since
