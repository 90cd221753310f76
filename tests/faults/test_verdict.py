"""The check of the soak finds each fault that is planted into the target."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.verify.range_planning import Offsets
from sparkmirror.verify.rules_and_result import Rules
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict, to_json
from tests.faults.verdict import Verdict, judge
from tests.support.planted_faults import FAULTS, dropped
from tests.unit.verify.mirrored_logs import OURS, Logs, Writing, of_keys, pairs, verified, written

RULES = Rules(producer_id=OURS)

keys = st.lists(st.integers(0, 3), min_size=2, max_size=12)
places = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)
Pair = tuple[Writing, Writing]


def judged(*partitions: Logs, behind: int = 0) -> Verdict:
    """Partitions that were compared up to so many offsets before their ends."""
    verdicts = [
        PartitionVerdict(
            TopicPartition("t", number),
            TopicPartition("V.t", number),
            verified(logs, RULES),
            Offsets(logs[0].end - behind, logs[1].end - behind),
        )
        for number, logs in enumerate(partitions)
    ]
    flow = FlowVerdict("V->W", verdicts)
    ends = {
        side: {number: logs[at].end for number, logs in enumerate(partitions)}
        for at, side in enumerate(("source", "target"))
    }
    return judge(0 if flow.is_equal else 1, to_json([flow]), ends)


@settings(max_examples=25)
@pytest.mark.parametrize("name", FAULTS)
@given(keys, places, pairs)
def test_fault_is_found_with_its_partition(name: str, keys: list[int], place: float, pair: Pair) -> None:
    records = of_keys(keys)
    right = written(pair, records, records)
    found = judged(right, written(pair, records, FAULTS[name](records, round(place * (len(keys) - 1)))))
    assert not found.is_exact
    assert found.exit_code == 1
    assert all(problem.startswith("t-1: ") for problem in found.problems)
    assert found.losses == (name == "dropped")
    assert found.duplicates == (name == "doubled")


@settings(max_examples=25)
@given(keys, places, pairs)
def test_record_that_arrives_in_another_partition_is_found(keys: list[int], place: float, pair: Pair) -> None:
    records = of_keys(keys)
    others = [record._replace(value=b"other-%d" % record.offset) for record in records]
    at = round(place * (len(keys) - 1))
    found = judged(
        written(pair, records, dropped(records, at)),
        written(pair, others, [*others[:at], records[at], *others[at:]]),
    )
    assert (found.losses, found.duplicates) == (1, 1)


@settings(max_examples=25)
@given(keys, pairs)
def test_right_copies_are_accepted_if_they_were_compared_to_the_end(keys: list[int], pair: Pair) -> None:
    right = written(pair, of_keys(keys), of_keys(keys))
    assert judged(right, right).is_exact
    assert not judged(right, right, behind=1).is_exact


def test_partition_that_was_not_compared_is_found() -> None:
    found = judge(0, to_json([FlowVerdict("V->W", [])]), {"source": {0: 0, 1: 5}})
    assert found.problems == [
        "partition 0 ends at 0 (source), compared up to None",
        "partition 1 ends at 5 (source), compared up to None",
    ]
