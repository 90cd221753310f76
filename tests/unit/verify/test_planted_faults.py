"""`sparkmirror verify` finds each fault that is planted into the target, and takes nothing else for one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.verify.rules_and_result import Comparison, Rules
from sparkmirror.verify.verdict import PartitionVerdict, State
from tests.memory.compaction import compact
from tests.support.batches import NOW_MS, Rec
from tests.support.planted_faults import FAULTS, dropped
from tests.unit.verify.mirrored_logs import (
    OURS,
    Logs,
    Writing,
    of_keys,
    offsets,
    pairs,
    transactional,
    verified,
    writings,
    written,
)

PLAIN: Final = Rules(producer_id=OURS)
COMPACTED: Final = Rules(producer_id=OURS, source_is_compacted=True, target_is_compacted=True)

keys = st.lists(st.integers(0, 3), min_size=2, max_size=12)
some_keys = st.lists(st.integers(0, 3), max_size=12)
places = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)
Pair = tuple[Writing, Writing]


def assert_named(name: str, found: Comparison, source: Sequence[int], target: Sequence[int]) -> None:
    """A difference has the partition and an offset of the fault. The offsets are those from the fault on."""
    count = 2 if name in ("doubled", "swapped") else 1
    verdict = PartitionVerdict(TopicPartition("t", 3), TopicPartition("V.t", 3), found)
    assert verdict.state is State.DIFFERENT
    assert all(problem.startswith("t-3 and V.t-3: ") for problem in verdict.problems)
    in_target = set() if name == "dropped" else set(target[:count])
    assert any(
        difference.source_offset in source[:count] or difference.target_offset in in_target
        for difference in found.differences
    ), found
    assert found.difference_count <= 2, found


def place_of(name: str, place: float, count: int) -> int:
    """Return the place of the first of the records that the fault concerns."""
    return round(place * (count - (2 if name == "swapped" else 1)))


@settings(max_examples=30)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("rules", [PLAIN, COMPACTED], ids=["plain", "compacted"])
@given(keys, places, pairs, st.booleans())
def test_fault_is_named_with_its_offset(
    name: str, rules: Rules, keys: list[int], place: float, pair: Pair, producer_is_known: bool
) -> None:
    """Also in a compacted topic that the log cleaner has not reached."""
    records, at = of_keys(keys), place_of(name, place, len(keys))
    logs = written(pair, records, FAULTS[name](records, at))
    rules = replace(rules, producer_id=OURS if producer_is_known else None)
    assert_named(name, verified(logs, rules), *(offsets(log)[at:] for log in logs))


@settings(max_examples=30)
@pytest.mark.parametrize("name", FAULTS)
@given(keys, places, transactional(), writings | transactional(producer_id=OURS))
def test_fault_among_transactions_is_named_with_its_offset(
    name: str, keys: list[int], place: float, source: Writing, target: Writing
) -> None:
    records, at = of_keys(keys), place_of(name, place, len(keys))
    logs = written((source, target), records, FAULTS[name](records, at))
    assert_named(name, verified(logs, PLAIN), *(offsets(log)[at:] for log in logs))


@settings(max_examples=30)
@pytest.mark.parametrize("name", FAULTS)
@given(keys, some_keys, some_keys, places, pairs)
def test_fault_behind_compacted_records_is_named_with_its_offset(
    name: str, keys: list[int], before: list[int], after: list[int], place: float, pair: Pair
) -> None:
    """The cleaners have been at what comes before, and what is removed has later records of its keys."""
    records, at = of_keys([*before, *keys, *after]), len(before) + place_of(name, place, len(keys))
    logs = written(pair, records, FAULTS[name](records, at))
    for log in logs:
        compact(log, len(before))
    assert_named(name, verified(logs, COMPACTED), range(at, at + 2), range(at, at + 2))


@settings(max_examples=30)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("side", ["source", "target"])
@given(keys, st.integers(1, 12), places, pairs)
def test_fault_behind_what_retention_removed_is_named_with_its_offset(
    name: str, side: str, keys: list[int], lost: int, place: float, pair: Pair
) -> None:
    """At the first record that is left, one that is dropped or doubled may as well be due to retention."""
    records = of_keys([*range(lost), 0, *keys])
    at = lost + place_of(name, place, len(keys)) + (0 if name.endswith("altered") else 1)
    logs = written(pair, records, FAULTS[name](records, at))
    logs[side == "target"].delete_before(lost)
    rules = replace(PLAIN, source_lost_beginning=side == "source", target_lost_beginning=side == "target")
    assert_named(name, verified(logs, rules), range(at, at + 2), range(at, at + 2))


@given(keys, places, pairs)
def test_record_that_moved_to_another_partition_is_missing_where_it_belongs_and_extra_where_it_is(
    keys: list[int], place: float, pair: Pair
) -> None:
    records = of_keys(keys)
    others = [record._replace(value=b"other-%d" % record.offset) for record in records]
    at = round(place * (len(records) - 1))
    left = verified(written(pair, records, dropped(records, at)), PLAIN)
    assert [found[:3] for found in left.differences] == [("missing", at, None)]
    joined = verified(written(pair, others, [*others[:at], records[at], *others[at:]]), PLAIN)
    assert [found[:3] for found in joined.differences] == [("extra", None, at)]


# differences that are none


def assert_equal(logs: Logs, rules: Rules) -> None:
    found = verified(logs, rules)
    assert (found.is_equal, found.foreign) == (True, 0), found
    for log in logs:
        assert found.equal <= len(offsets(log)) <= found.equal + found.not_comparable


@given(some_keys, writings | transactional(), writings | transactional(producer_id=OURS), st.data())
def test_compaction_of_either_side_is_no_difference(
    keys: list[int], source: Writing, target: Writing, data: st.DataObject
) -> None:
    """However far the cleaners have come."""
    logs = written((source, target), of_keys(keys), of_keys(keys))
    for log in logs:
        compact(log, data.draw(st.integers(0, log.end)))
    assert_equal(logs, COMPACTED)


@given(some_keys, pairs, st.data())
def test_compaction_and_then_retention_is_no_difference(
    keys: list[int], pair: Pair, data: st.DataObject
) -> None:
    logs = written(pair, of_keys(keys), of_keys(keys))
    for log in logs:
        compact(log, data.draw(st.integers(0, log.end)))
        log.delete_before(data.draw(st.integers(0, log.end)))
    lost = [log.start > 0 for log in logs]
    assert_equal(logs, replace(COMPACTED, source_lost_beginning=lost[0], target_lost_beginning=lost[1]))


def test_retention_and_compaction_at_both_beginnings_is_no_difference() -> None:
    """The target's retention is further, and the source's cleaner has been at what the target still has."""
    source, target = written(
        (Writing([], 0), Writing([], 0, OURS)), of_keys([0, 0, 0, 1, 1]), of_keys([0, 0, 0, 1, 1])
    )
    compact(source, 5)
    source.delete_before(1)
    target.delete_before(3)
    assert_equal((source, target), replace(COMPACTED, source_lost_beginning=True, target_lost_beginning=True))


@given(some_keys, st.lists(st.integers(0, 12), max_size=4), pairs)
def test_records_of_other_producers_between_compacted_ones_are_no_difference(
    keys: list[int], foreign: list[int], pair: Pair
) -> None:
    mixed = of_keys(keys)
    for number, at in enumerate(foreign):
        mixed.insert(at, Rec(0, NOW_MS - 1, b"other-%d" % number, b"value"))
    logs = written(pair, of_keys(keys), mixed)
    for log in logs:
        compact(log)
    found = verified(logs, replace(COMPACTED, producer_id=None))
    assert (found.is_equal, found.foreign) == (True, len(foreign)), found


@given(st.integers(1, 4), st.booleans(), st.integers(0, 3), pairs)
def test_equal_records_of_which_one_is_left_by_compaction_are_no_difference(
    times: int, at_source: bool, others: int, pair: Pair
) -> None:
    """Which of them is left can't be seen."""
    twin, *rest = of_keys([9, *range(others)])
    records = [*[twin] * times, *rest]
    logs = written(pair, records, records)
    compact(logs[0 if at_source else 1])
    assert_equal(logs, COMPACTED)
