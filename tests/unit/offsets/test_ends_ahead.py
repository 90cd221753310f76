"""Ends of an epoch that is written with: noted with what was taken, and recorded before it is sent."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, OutgoingBatch
from sparkmirror.offsets.ends_ahead import EndsAhead
from sparkmirror.offsets.sequence_ends import SequenceEnd, end_behind


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
    recorded, is_due = ahead.ends, False
    for _ in range(rng.randrange(1, 30)):
        offset += rng.choice((0, 0, 0, 1, 7))
        epoch += rng.random() < 0.1
        offsets = []
        for _ in range(rng.randrange(1, 4)):
            offsets.append(offset)
            offset += rng.choice((1, 1, 1, 2))
        is_due = ahead.take(batch(*offsets), epoch) or is_due
        if is_due and rng.random() < 0.7:  # or the next ones are held with it
            recorded, is_due = ahead.ends, False
        firsts[sent[-1].records] = offsets[0]
        sent.append(ahead.taken)
        firsts[ahead.taken.records] = ahead.taken.offset
        offset = ahead.taken.offset
        for end in () if is_due else sent:
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


def test_what_is_acknowledged_is_not_recorded_again() -> None:
    ahead = EndsAhead(SequenceEnd(0, 0, 0))
    for number in range(1, 6):
        assert ahead.take(batch(10 * number, 10 * number + 5), 0)
        assert ahead.ends[-1] == SequenceEnd(2 * number - 1, 10 * number + 5, 0)
    ahead.acknowledged(4)
    assert ahead.ends[0] == SequenceEnd(4, 30, 0)
    ahead.acknowledged(10)
    assert ahead.ends == (SequenceEnd(8, 50, 0), SequenceEnd(9, 55, 0))
