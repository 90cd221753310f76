from typing import Final

import pytest

from sparkmirror.domain.ids import LogIdentity
from sparkmirror.status.flow_offsets import next_offset
from sparkmirror.storage.positions import Position

OF_JAVA: Final = Position(6)
OWN: Final = OF_JAVA._replace(logs=LogIdentity(b"source", 3, b"target"))


@pytest.mark.parametrize(
    ("position", "known_to", "found"),
    [
        (None, None, None),
        (None, 36, 36),
        (OF_JAVA, None, 7),
        (OF_JAVA, 36, 36),
        (OF_JAVA, 2, 7),
        (OWN, None, 7),
        (OWN, 2, 7),
        (OWN, 36, 7),
    ],
)
def test_an_own_position_counts_more_than_a_sync_which_may_be_about_an_earlier_topic(
    position: Position | None, known_to: int | None, found: int | None
) -> None:
    assert next_offset(position, known_to) == found
