"""Ends of sequences: what follows the n-th record, whatever gaps, jumps and leader epochs are between."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch
from sparkmirror.offsets.sequence_ends import (
    EndsAhead,
    NoSuchEndError,
    SequenceEnd,
    decode_ends,
    encode_ends,
    end_behind,
)


def batch(*offsets: int) -> OutgoingBatch:
    return OutgoingBatch(memoryview(b""), offsets, 0)


def test_records_that_follow_each_other_need_no_end() -> None:
    ahead = EndsAhead(SequenceEnd(0, 100, 3))
    assert not ahead.take(batch(100, 101), 3)
    assert not ahead.take(batch(102), 3)
    assert ahead.ends == (SequenceEnd(0, 100, 3),)
    assert end_behind(ahead.ends, 3) == SequenceEnd(3, 103, 3)


def test_a_gap_and_another_leader_epoch_need_one() -> None:
    ahead = EndsAhead(SequenceEnd(0, 100, 3))
    assert ahead.take(batch(105, 106), 3)
    assert ahead.take(batch(107, 109), 3)
    assert not ahead.take(batch(110), 3)
    assert ahead.take(batch(111), 4)
    assert end_behind(ahead.ends, 1) == SequenceEnd(1, 106, 3)
    assert end_behind(ahead.ends, 2) == SequenceEnd(2, 107, 3)
    assert end_behind(ahead.ends, 3) == SequenceEnd(3, 109, 3)  # the batch may have been split
    assert end_behind(ahead.ends, 4) == SequenceEnd(4, 110, 3)
    assert end_behind(ahead.ends, 6) == SequenceEnd(6, 112, 4)


def test_what_was_dropped_is_forgotten() -> None:
    ahead = EndsAhead(SequenceEnd(0, 0, 0))
    ahead.take(batch(0), 0)
    ahead.take(batch(5, 8), 0)
    ahead.go_to(1, 1, 0)
    assert ahead.take(batch(6, 8), 0)
    assert end_behind(ahead.ends, 3) == SequenceEnd(3, 9, 0)


def test_sequences_that_start_again_at_0_are_found() -> None:
    ends = (SequenceEnd(SEQUENCE_MODULUS - 2, 70, 1), SequenceEnd(SEQUENCE_MODULUS + 1, 80, 1))
    assert end_behind(ends, SEQUENCE_MODULUS - 1).offset == 71
    assert end_behind(ends, 0).offset == 72
    assert end_behind(ends, 3).offset == 82


def test_an_end_before_all_that_are_known_is_an_error() -> None:
    with pytest.raises(NoSuchEndError):
        end_behind((SequenceEnd(10, 70),), 9)


def test_an_end_is_noted_before_sequences_can_be_mistaken() -> None:
    ahead = EndsAhead(SequenceEnd(0, 0, 0))
    step = SEQUENCE_MODULUS // 8
    noted = [
        ahead.take(OutgoingBatch(memoryview(b""), range(at * step, (at + 1) * step), 0), 0)
        for at in range(16)
    ]
    assert any(noted)
    assert end_behind(ahead.ends, 16 * step % SEQUENCE_MODULUS).offset == 16 * step


@given(st.randoms(use_true_random=False))
def test_each_batch_that_may_be_in_the_log_is_found(rng: random.Random) -> None:
    """Acknowledgements and drops come in between; the ends are as they were when a batch was sent."""
    ahead = EndsAhead(SequenceEnd(0, 0, 0))
    sent: list[SequenceEnd] = [SequenceEnd(0, 0, 0)]
    firsts = {0: 0}  # what follows so many records: a gap may lie before it
    acknowledged, offset, epoch = 0, 0, 0
    recorded = ahead.ends
    for _ in range(rng.randrange(1, 30)):
        offset += rng.choice((0, 0, 0, 1, 7))
        epoch += rng.random() < 0.1
        offsets = []
        for _ in range(rng.randrange(1, 4)):
            offsets.append(offset)
            offset += rng.choice((1, 1, 1, 2))
        if ahead.take(batch(*offsets), epoch):
            recorded = ahead.ends
        firsts[sent[-1].records] = offsets[0]
        sent.append(ahead.taken)
        firsts[ahead.taken.records] = ahead.taken.offset
        offset = ahead.taken.offset
        for end in sent:
            if end.records >= max(acknowledged, 1):
                found = end_behind(recorded, end.sequence)
                assert found.records == end.records
                assert end.offset <= found.offset <= firsts[end.records]
        if rng.random() < 0.3:
            acknowledged = rng.choice([end.records for end in sent if end.records >= acknowledged])
            ahead.acknowledged(acknowledged)
        if rng.random() < 0.1:
            last = rng.choice([end for end in sent if end.records >= acknowledged])
            ahead.go_to(*last)
            sent = [end for end in sent if end.records <= last.records]
            offset, epoch = last.offset, max(epoch, last.epoch)
    counts = [end.records for end in ahead.ends]
    assert all(before < after for before, after in pairwise(counts))


@given(st.lists(st.tuples(*[st.integers(-1, 2**60)] * 3).map(lambda values: SequenceEnd(*values))))
def test_ends_are_decoded_as_they_were(ends: list[SequenceEnd]) -> None:
    assert decode_ends(encode_ends(ends)) == tuple(ends)
