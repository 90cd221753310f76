"""Acknowledged records become runs of offsets that are consecutive on both sides."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.state_writer import contiguous_runs
from sparkmirror.offsets.offset_runs import Run


def runs(offsets: list[int] | range, base_offset: int = 1000) -> list[Run]:
    return list(contiguous_runs(OutgoingBatch(memoryview(b""), offsets, 0), base_offset))


def test_a_batch_that_was_copied_whole_is_one_run() -> None:
    assert runs(range(5, 9)) == [Run(5, 1000, 4)]
    assert runs([7]) == [Run(7, 1000, 1)]


def test_records_are_missing_where_compaction_or_aborts_took_them() -> None:
    assert runs([5, 6, 9, 12, 13]) == [Run(5, 1000, 2), Run(9, 1002, 1), Run(12, 1003, 2)]


def test_a_gap_right_after_the_first_and_right_before_the_last() -> None:
    assert runs([1, 3, 4, 6]) == [Run(1, 1000, 1), Run(3, 1001, 2), Run(6, 1003, 1)]


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 2**40))
def test_runs_pair_every_record_with_its_copy(offsets: set[int], base_offset: int) -> None:
    upstream = sorted(offsets)
    found = runs(upstream, base_offset)
    pairs = [(run.first_upstream + at, run.first_downstream + at) for run in found for at in range(run.count)]
    assert pairs == list(zip(upstream, range(base_offset, base_offset + len(upstream)), strict=True))
    assert all(later.first_upstream > earlier.last_upstream + 1 for earlier, later in pairwise(found)), (
        "two runs that could be one"
    )
