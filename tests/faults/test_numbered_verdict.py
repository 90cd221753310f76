"""The check of numbered topics finds planted faults, and allows what unclean elections removed."""

from collections.abc import Sequence

import pytest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import source_truncated, target_truncated
from tests.faults.numbered import FRAIL, NUMBERED, NUMBERED_PARTITIONS
from tests.faults.numbered_verdict import (
    NOTHING,
    Election,
    Notice,
    Told,
    compacted_problems,
    numbered_problems,
    told_by,
)

PARTITION = TopicPartition(FRAIL, 0)
SOURCE = [3, 9, 15, 21, 27]
PLANTED = {
    "missing": [3, 9, 21, 27],
    "there twice": [3, 9, 15, 15, 21, 27],
    "extra": [3, 9, 15, 18, 21, 27],
    "order": [3, 15, 9, 21, 27],
}
LOST = {100: 30, 101: 36, 102: 42}
"""By offset, what an election removed."""


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    assert numbered_problems(SOURCE, SOURCE, NOTHING) == []
    (problem,) = numbered_problems(SOURCE, PLANTED[fault], NOTHING)
    assert fault in problem


def test_where_a_late_batch_is_not_fenced_records_may_repeat_and_nothing_else() -> None:
    for fault, target in PLANTED.items():
        is_found = bool(numbered_problems(SOURCE, target, NOTHING, may_repeat=True))
        assert is_found == (fault != "there twice")


def test_a_batch_that_came_without_the_one_before_is_there_again_behind_it() -> None:
    target = [3, 15, 21, 9, 15, 21, 27]
    assert numbered_problems(SOURCE, target, NOTHING, may_repeat=True) == []
    (problem,) = numbered_problems(SOURCE, target, NOTHING)
    assert "there twice" in problem


def test_what_the_source_has_twice_is_there_twice() -> None:
    """The source's brokers forget the load's producer, too."""
    source = [*SOURCE[:4], *SOURCE[2:]]
    assert numbered_problems(source, source, NOTHING) == []
    assert numbered_problems(source, source, NOTHING, may_repeat=True) == []
    assert numbered_problems(source, SOURCE, NOTHING, may_repeat=True) == [
        "the source has more records twice"
    ]


def test_what_the_source_lost_may_be_extra_only_as_far_as_an_incident_tells_it() -> None:
    election = Election("source", PARTITION, LOST)
    notice = Notice(PARTITION, source_truncated(102, 100).text)
    by_partition, problems = told_by([notice, notice], [election])
    told = by_partition[PARTITION]
    assert (told, problems) == (Told({30, 36}, set()), [])
    assert numbered_problems([3, 50], [3, 30, 36, 50], told) == []
    assert numbered_problems([3, 50], [3, 30, 36, 42, 50], told) == ["1 extra: 42"]
    assert numbered_problems([3, 50], [3, 30, 50], told) == ["1 not there, though incidents say so: 36"]


def test_what_the_target_lost_must_be_missing_as_an_incident_tells_it() -> None:
    election = Election("target", PARTITION, LOST)
    # An attempt's marker stands where the first lost record was.
    notice = Notice(PARTITION, target_truncated("here.t-0", 101, 102, 7).text)
    by_partition, problems = told_by([notice], [election])
    told = by_partition[PARTITION]
    assert (told, problems) == (Told(set(), {30, 36}), [])
    assert numbered_problems([3, 30, 36, 42], [3, 42], told) == []
    assert numbered_problems([3, 30, 36, 42], [3], told) == ["1 missing: 42"]
    assert numbered_problems([3, 30, 36, 42], [3, 30, 42], told) == [
        "1 there, though an incident calls it lost: 30"
    ]


@pytest.mark.parametrize(
    "election",
    [
        Election("target", PARTITION, LOST),
        Election("source", TopicPartition(FRAIL, 1), LOST),
        Election("source", PARTITION, {90: 5}),
    ],
)
def test_an_incident_that_no_election_explains_is_a_problem(election: Election) -> None:
    told, problems = told_by([Notice(PARTITION, source_truncated(102, 100).text)], [election])
    assert told[PARTITION] == NOTHING
    assert len(problems) == 1


def step(number: int) -> int:
    """The numbers of one partition of one topic."""
    return number * len(NUMBERED) * NUMBERED_PARTITIONS


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ([0, 1, 2, 20, 21], None),
        ([1, 2, 20, 21], None),
        ([2, 20, 21], None),
        ([2, 20], "missing"),
        ([2, 21, 20], "order"),
        ([2, 20, 21, 21], "twice"),
    ],
)
def test_of_compacted_topics_the_newest_of_each_key_must_be_there(
    target: Sequence[int], problem: str | None
) -> None:
    problems = compacted_problems([step(at) for at in (1, 2, 20, 21)], [step(at) for at in target])
    assert bool(problems) == (problem is not None)
    assert problem is None or problem in problems[0]
