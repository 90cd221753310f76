"""Random logs, copied from any position in any responses, against a model that copies record by record."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.aborted_transactions import AbortedTransactions
from sparkmirror.domain.batch_copying import CopyRules, Step, copy_batches
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    FetchedBatch,
    OutgoingBatch,
    iterate_batches,
    stamp,
)
from tests.batches import NOW_MS, Rec, decode, encode, fetched, joined, marker, patch

DELETE_HORIZON = 0x40
GZIP = 1


class Logged(NamedTuple):
    """A batch of a log, and its records as a consumer reads them (none of a control batch)."""

    data: bytearray
    base_offset: int
    last_offset: int
    records: tuple[Rec, ...]


def ordinary(base_offset: int, deltas: Sequence[int], last: int, codec: int, attributes: int) -> Logged:
    """A batch in which compaction left the records at `deltas`; `last` is its last offset delta."""
    records = [
        Rec(delta, NOW_MS + 7 * delta, None if delta % 3 == 0 else b"k%d" % delta, b"v%d" % base_offset * 9)
        for delta in deltas
    ]
    append_time = NOW_MS + 10_000 + base_offset
    header = {"base_offset": base_offset, "last_offset_delta": last, "attributes": codec | attributes}
    if attributes & LOG_APPEND_TIME:
        header["max_timestamp"] = append_time
        records = [record._replace(timestamp=append_time) for record in records]
    data = encode(records, codec=codec, **header) if records else _emptied(header)
    seen = tuple(record._replace(offset=base_offset + record.offset) for record in records)
    return Logged(data, base_offset, base_offset + last, seen)


def _emptied(header: dict[str, int]) -> bytearray:
    return patch(encode([Rec(0)])[:HEADER_BYTES], **header, length=HEADER_BYTES - 12, record_count=0)


@st.composite
def logs(draw: Callable[[Any], Any]) -> list[Logged]:
    log: list[Logged] = []
    offset = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 6))):
        offset += draw(st.sampled_from([0, 0, 0, 1, 5]))
        if draw(st.integers(0, 5)) == 0:
            log.append(Logged(marker(offset, 77, commit=draw(st.booleans())), offset, offset, ()))
        else:
            last = draw(st.integers(0, 5))
            kept = draw(st.just(set(range(last + 1))) | st.sets(st.integers(0, last)))
            attributes = draw(st.sampled_from([0, 0, LOG_APPEND_TIME, DELETE_HORIZON]))
            log.append(ordinary(offset, sorted(kept), last, draw(st.sampled_from([0, 1, 3])), attributes))
        offset = log[-1].last_offset + 1
    return log


RULES = st.builds(
    CopyRules,
    target_stamps_append_time=st.booleans(),
    batch_bytes_max=st.sampled_from([100, 200, 1048588]),
    codec=st.sampled_from([None, None, 0, 3]),
)


def copy(log: Sequence[Logged], position: int, rules: CopyRules) -> Iterator[Step]:
    response = joined([batch.data for batch in log])
    return copy_batches(iterate_batches(response), position, rules, None)


def arrived(batches: Sequence[OutgoingBatch], *, times: bool = True) -> list[Rec]:
    """What the target would hold, under the upstream offsets; each batch must be one that it takes."""
    records = []
    for batch in batches:
        stamp(batch.data, 5, 0, 0)
        (sent,) = iterate_batches(batch.data)
        assert sent.header.base_offset == 0
        assert sent.header.is_contiguous
        assert not sent.header.attributes & ~CODEC_MASK
        inside = decode(batch.data)
        assert [record.offset for record in inside] == list(range(len(batch.offsets)))
        records += [
            Rec(offset, record.timestamp if times else 0, *record[2:])
            for record, offset in zip(inside, batch.offsets, strict=True)
        ]
    return records


@given(log=logs(), rules=RULES, skipped=st.integers(0, 25), cuts=st.sets(st.integers(1, 6)))
def test_every_log_from_every_position_in_any_responses(
    log: list[Logged], rules: CopyRules, skipped: int, cuts: set[int]
) -> None:
    first = position = log[0].base_offset + skipped
    expected = [record for batch in log for record in batch.records if record.offset >= position]
    if rules.target_stamps_append_time:
        expected = [record._replace(timestamp=0) for record in expected]
    copied: list[Rec] = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    for start, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007 - an empty response is one too
        for step in copy(log[start:end], position, rules):
            copied += arrived(step.batches, times=not rules.target_stamps_append_time)
            assert step.position > position
            assert all(
                position <= offset < step.position for batch in step.batches for offset in batch.offsets
            )
            position = step.position
    assert copied == expected
    assert position == max(first, log[-1].last_offset + 1)


@given(log=logs(), rules=RULES)
def test_batches_have_the_codec_and_the_size_that_was_asked_for(log: list[Logged], rules: CopyRules) -> None:
    for batch, step in zip(log, copy(log, 0, rules), strict=True):
        for outgoing in step.batches:
            codec = batch.data[22] & CODEC_MASK if rules.codec is None else rules.codec
            assert outgoing.data[22] & CODEC_MASK == codec
            assert outgoing.max_timestamp == max(record.timestamp for record in batch.records) or (
                len(step.batches) > 1
            )


def test_a_whole_batch_is_not_touched() -> None:
    """The bytes to send are those that the fetch response holds, at the same place."""
    response = joined([ordinary(40, [0, 1, 2], 2, GZIP, 0).data])
    (step,) = copy_batches(iterate_batches(response), 40, CopyRules(), None)
    (outgoing,) = step.batches
    assert outgoing.offsets == range(40, 43)
    assert outgoing.data.obj is response.obj
    assert step.position == 43


def test_a_batch_above_the_limit_that_needs_no_rewriting_is_left_to_the_target_to_judge() -> None:
    log = [ordinary(0, range(6), 5, 0, 0)]
    (step,) = copy(log, 0, CopyRules(batch_bytes_max=100))
    assert len(step.batches) == 1


def test_a_rewritten_batch_keeps_to_the_limit() -> None:
    log = [ordinary(0, [0, 2, 3, 5], 5, 0, 0)]
    (step,) = copy(log, 0, CopyRules(batch_bytes_max=100))
    assert [list(batch.offsets) for batch in step.batches] == [[0], [2], [3], [5]]


def test_nothing_left_moves_the_position() -> None:
    log = [Logged(marker(3, 9, commit=True), 3, 3, ()), ordinary(4, [], 4, 0, 0)]
    assert list(copy(log, 3, CopyRules())) == [Step([], 4), Step([], 9)]


def test_an_aborted_batch_moves_the_position() -> None:
    data = encode([Rec(0), Rec(1)], base_offset=7, attributes=0x10, producer_id=9)
    steps = list(copy_batches([fetched(data)], 7, CopyRules(), AbortedTransactions([(9, 7)])))
    assert steps == [Step([], 9)]


def test_markers_before_the_position_still_end_transactions() -> None:
    """A fetch from inside a batch returns the whole of it, and of what the broker stored beside it."""
    batches = [
        encode([Rec(0)], base_offset=5, attributes=0x10, producer_id=9),
        marker(6, 9, commit=False),
        encode([Rec(0)], base_offset=7, attributes=0x10, producer_id=9),
    ]
    found = map(fetched, batches)
    (step,) = copy_batches(found, 7, CopyRules(), AbortedTransactions([(9, 5)]))
    assert [list(batch.offsets) for batch in step.batches] == [[7]]


def test_read_uncommitted_copies_aborted_records_and_drops_markers() -> None:
    data = encode([Rec(0), Rec(1)], base_offset=7, attributes=0x10, producer_id=9)
    steps = list(copy_batches(map(fetched, [data, marker(9, 9, commit=False)]), 7, CopyRules(), None))
    assert [step.position for step in steps] == [9, 10]
    assert [list(batch.offsets) for step in steps for batch in step.batches] == [[7, 8]]


def broken(base_offset: int) -> FetchedBatch:
    data = encode([Rec(0)], base_offset=base_offset)
    data[-1] ^= 1
    return fetched(data)


def test_a_wrong_crc_names_the_offset_after_what_came_before() -> None:
    steps = copy_batches([fetched(encode([Rec(0)])), broken(1)], 0, CopyRules(), None)
    assert next(steps).position == 1
    with pytest.raises(CorruptBatchError, match="offset 1: CRC mismatch"):
        next(steps)


def test_crcs_are_not_checked_where_the_user_says_so() -> None:
    rules = replace(CopyRules(), check_crcs=False)
    assert [step.position for step in copy_batches([broken(4)], 4, rules, None)] == [5]


def test_a_batch_that_can_not_be_opened_names_the_offset() -> None:
    data = encode([Rec(0), Rec(1)], base_offset=30, attributes=4)
    with pytest.raises(CorruptBatchError, match="offset 30: zstd data can't be decompressed"):
        list(copy_batches([fetched(data)], 31, CopyRules(), None))
