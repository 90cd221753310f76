from collections.abc import Mapping, Sequence

import pytest

from sparkmirror.batches.record_body import RecordBody, write_body
from sparkmirror.batches.records import RawRecord
from sparkmirror.migrate.promote.log_comparison import Differences, Kind, Parted, differences, first_compared

ALONE, OTHER, PASSED = Kind.ALONE, Kind.OTHER, Kind.PASSED


def log(records: Mapping[int, str], *, later_ms: int = 0) -> list[RawRecord]:
    return [
        RawRecord(offset, 1000 + later_ms, write_body(RecordBody(f"k{offset}".encode(), value.encode())))
        for offset, value in records.items()
    ]


@pytest.mark.parametrize(
    ("follower", "leading", "parted", "expected"),
    [
        ({8: "a", 9: "b"}, {8: "a", 9: "b", 11: "x"}, Parted(10, 10), []),
        ({8: "a"}, {9: "b"}, Parted(10, 10), []),  # compaction
        ({9: "b"}, {9: "c"}, Parted(10, 10), [(OTHER, 9)]),
        ({9: "b", 10: "own"}, {9: "b", 11: "x"}, Parted(10, 11), [(ALONE, 10)]),
        ({9: "b", 10: "own", 11: "mine"}, {9: "b", 11: "x"}, Parted(10, 12), [(ALONE, 10), (OTHER, 11)]),
        ({9: "b"}, {9: "b", 11: "x"}, Parted(10, 12), [(PASSED, 11)]),  # markers there
        ({9: "b", 11: "x"}, {9: "b", 11: "x"}, Parted(10, 12), []),  # copied since
        ({7: "a"}, {7: "a", 8: "b", 9: "c"}, Parted(10, 8), []),  # it has lost some
    ],
)
def test_what_keeps_a_log_from_following(
    follower: Mapping[int, str],
    leading: Mapping[int, str],
    parted: Parted,
    expected: Sequence[tuple[Kind, int]],
) -> None:
    found = differences(log(follower), log(leading), parted, compares_times=True)
    assert [(kind, record.offset) for kind, record in found] == expected


def test_times_count_unless_brokers_make_them() -> None:
    sides = log({3: "a"}), log({3: "a"}, later_ms=1)
    assert [kind for kind, _ in differences(*sides, Parted(4, 4), compares_times=True)] == [OTHER]
    assert not list(differences(*sides, Parted(4, 4), compares_times=False))


def test_differences_are_counted_and_the_first_keys_named() -> None:
    follower, leading = dict.fromkeys(range(10, 15), "own"), {12: "x", 15: "y"}
    found = Differences.of(differences(log(follower), log(leading), Parted(10, 16), compares_times=True))
    assert found.counts == {ALONE: 4, OTHER: 1, PASSED: 1}
    assert (found.first, found.last, found.own) == (10, 15, 5)
    assert found.keys == [b"k10", b"k11", b"k12"]
    assert found
    assert not Differences()


def test_some_offsets_before_the_parting_are_compared() -> None:
    assert first_compared(Parted(1000, 1200)) == 900
    assert first_compared(Parted(1000, 400)) == 300
    assert first_compared(Parted(50, 50)) == 0
