import cramjam
import pytest

from bench.workloads import BY_NAME, COPIED, KEY_BYTES, Workload, values


@pytest.mark.parametrize("workload", COPIED, ids=lambda workload: workload.name)
def test_records_have_exactly_the_size_of_their_workload(workload: Workload) -> None:
    sizes = {len(value) + KEY_BYTES for value in values(workload.record_bytes, 500)}
    assert sizes == {workload.record_bytes}


@pytest.mark.parametrize("record_bytes", [100, 1024])
def test_lz4_shrinks_a_batch_two_to_four_times(record_bytes: int) -> None:
    batch = b"".join(values(record_bytes, (128 << 10) // record_bytes))
    assert 2 < len(batch) / len(bytes(cramjam.lz4.compress_block(batch, store_size=False))) < 4


def test_values_are_the_same_in_every_run() -> None:
    assert list(values(1024, 3)) == list(values(1024, 3))


def test_a_given_number_of_records_keeps_the_share_of_mm2() -> None:
    sized = BY_NAME["1kb"].with_records(600_000)
    assert (sized.records, sized.mm2_records) == (600_000, 100_000)
