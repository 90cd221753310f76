from bench.compaction import keyed, parse_checkpoint
from bench.workloads import KEY_BYTES

CHECKPOINT = "0\n3\ndata 0 70\ndata 1 90\nother data 0 5\n"


def test_cleaner_checkpoint_gives_the_clean_offset_of_each_partition() -> None:
    assert parse_checkpoint(CHECKPOINT, "data") == {0: 70, 1: 90}
    assert parse_checkpoint("0\n0\n", "data") == {}


def test_about_half_of_the_records_have_a_key_of_their_own() -> None:
    keys = [key for key, _ in keyed([b"a", b"b"], 10_000)]
    recurring = max(set(keys), key=keys.count)
    assert 4800 < keys.count(recurring) < 5200
    assert len(set(keys)) == 10_001 - keys.count(recurring)
    assert {len(key) for key in keys} == {KEY_BYTES}
