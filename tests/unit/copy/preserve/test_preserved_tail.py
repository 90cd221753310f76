"""The last batches of a log decide how data continues at its end."""

import pytest

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import CONTROL, SEQUENCE_MODULUS, BatchHeader
from sparkmirror.copy.preserve.preserved_tail import state_behind

P, OTHER = 7, 8
END = 100


def data(epoch: int, sequence: int, count: int = 1, producer_id: int = P) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, 0, count - 1, 5, 5, producer_id, epoch, sequence, count)


def marker(epoch: int, producer_id: int = P) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, CONTROL, 0, 5, 5, producer_id, epoch, -1, 1)


@pytest.mark.parametrize(
    ("batches", "epoch", "sequence"),
    [
        ([data(3, 10, 5)], 3, 15),
        ([data(2, 0), data(3, 10, 5), marker(3)], 3, 15),
        ([data(3, 10, 5), marker(4)], 4, 0),
        ([data(3, 10, 5), marker(4), marker(6), marker(6)], 6, 0),
        ([marker(4), data(4, 0, 2)], 4, 2),
        ([data(3, SEQUENCE_MODULUS - 2, 4)], 3, 2),
        ([data(3, 1), marker(9, OTHER)], 3, 2),
    ],
)
def test_data_continues(batches: list[BatchHeader], epoch: int, sequence: int) -> None:
    assert state_behind(batches, END) == ProducerState(ProducerId(P, epoch), sequence, END)


def test_markers_alone_do_not_tell() -> None:
    assert state_behind([marker(1)], END) is None
    assert state_behind([], END) is None
