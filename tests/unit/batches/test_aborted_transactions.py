"""Dropping aborted batches under read_committed, compared with a model of all transactions."""

from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.record_batch import HEADER_BYTES, TRANSACTIONAL
from tests.support.batches import Rec, encode, fetched, marker, patch

ABORT, COMMIT = False, True


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    data: bytearray
    aborted: bool


def data_batch(base_offset: int, producer_id: int, count: int = 1) -> bytearray:
    attributes = TRANSACTIONAL if producer_id >= 0 else 0
    return encode(
        map(Rec, range(count)), base_offset=base_offset, producer_id=producer_id, attributes=attributes
    )


def dropped(batches: list[bytearray], aborted: list[tuple[int, int]]) -> list[int]:
    """Return the base offsets of the dropped batches."""
    transactions = AbortedTransactions(aborted)
    found = map(fetched, batches)
    return [batch.header.base_offset for batch in found if transactions.drops(batch)]


def test_an_aborted_transaction_is_dropped_up_to_its_marker() -> None:
    batches = [data_batch(0, 5), data_batch(1, 5), marker(2, 5, commit=ABORT), data_batch(3, 5)]
    assert dropped(batches, [(5, 0)]) == [0, 1]


def test_committed_batches_before_the_first_aborted_offset_stay() -> None:
    """The broker lists the producer id as aborted from 12 on, but its batches 7 to 10 were committed."""
    batches = [
        data_batch(7, 5, count=4),
        marker(11, 5, commit=COMMIT),
        data_batch(12, 5, count=3),
        marker(15, 5, commit=ABORT),
        data_batch(16, 5),
    ]
    assert dropped(batches, [(5, 12)]) == [12]


def test_transaction_begun_before_the_response_is_dropped() -> None:
    """A later fetch inside a transaction still lists its first offset."""
    assert dropped([data_batch(40, 5), marker(41, 5, commit=ABORT), data_batch(42, 5)], [(5, 3)]) == [40]


def test_batches_of_other_producers_are_not_dropped() -> None:
    batches = [data_batch(0, 5), data_batch(1, 6), data_batch(2, -1), data_batch(3, 5)]
    assert dropped(batches, [(5, 0)]) == [0, 3]


def test_batches_outside_of_transactions_are_not_dropped() -> None:
    plain = encode([Rec(0)], base_offset=1, producer_id=5)
    assert dropped([data_batch(0, 5), plain], [(5, 0)]) == [0]


def test_batch_that_contains_the_first_offset_is_dropped() -> None:
    """Compaction may leave a batch that begins before the first offset that the broker lists."""
    assert dropped([data_batch(10, 5, count=5)], [(5, 12)]) == [10]


def test_two_aborted_transactions_of_one_producer_are_dropped_in_any_order() -> None:
    batches = [
        data_batch(0, 5),
        marker(1, 5, commit=ABORT),
        data_batch(2, 5),
        marker(3, 5, commit=COMMIT),
        data_batch(4, 5),
        marker(5, 5, commit=ABORT),
    ]
    assert dropped(batches, [(5, 4), (5, 0)]) == [0, 4]


def test_marker_emptied_by_compaction_ends_no_transaction() -> None:
    empty = marker(1, 5, commit=ABORT)[:HEADER_BYTES]
    patch(empty, length=HEADER_BYTES - 12, record_count=0)
    assert dropped([data_batch(0, 5), empty, data_batch(2, 5)], [(5, 0)]) == [0, 2]


EVENTS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(1, 3), st.sampled_from([None, None, ABORT, COMMIT])),
    max_size=25,
)


def write_log(events: list[tuple[int, int, bool | None]]) -> tuple[list[Batch], list[tuple[int, int, int]]]:
    """Make a log and its aborted transactions as (producer id, first offset, offset of the marker)."""
    log: list[Batch] = []
    begun: dict[int, list[int]] = {}
    aborted = []
    for producer_id, count, end in events:
        offset = log[-1].last_offset + 1 if log else 0
        if end is None or producer_id not in begun:
            log.append(
                Batch(offset, offset + count - 1, data_batch(offset, producer_id, count), aborted=False)
            )
            if producer_id >= 0:
                begun.setdefault(producer_id, []).append(len(log) - 1)
            continue
        members = begun.pop(producer_id)
        if end is ABORT:
            aborted.append((producer_id, log[members[0]].base_offset, offset))
            for at in members:
                log[at] = log[at]._replace(aborted=True)
        log.append(Batch(offset, offset, marker(offset, producer_id, commit=end), aborted=False))
    return log, aborted


@given(events=EVENTS, cuts=st.sets(st.integers(0, 25)))
def test_exactly_the_aborted_batches_of_random_responses_are_dropped(
    events: list[tuple[int, int, bool | None]], cuts: set[int]
) -> None:
    log, aborted = write_log(events)
    edges = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})
    for start, end in pairwise(edges):
        response = log[start:end]
        first, last = response[0].base_offset, response[-1].last_offset
        listed = [(pid, begin) for pid, begin, end_at in aborted if end_at >= first and begin <= last]
        # Open transactions are after the last stable offset and never in a response.
        expected = [batch.base_offset for batch in response if batch.aborted]
        assert dropped([batch.data for batch in response], listed) == expected
