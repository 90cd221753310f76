"""Tests how far micro-batches advance, what is lost between them, and how ranges are divided into tasks."""

import json
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.dataframes.planning import OffsetRange, divided
from sparkmirror.dataframes.query_offset import (
    QueryOffset,
    limited,
    lost_between,
    offsets_behind_latest,
    records_between,
)
from sparkmirror.domain.ids import TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))
ID, OTHER_ID = b"0123456789abcdef", b"fedcba9876543210"
ENDS: Final = QueryOffset({A: 100, B: 50}, {"orders": ID})


def test_json_is_that_of_spark_with_the_ids_of_topics() -> None:
    content = QueryOffset({B: 2, A: 1}, {"orders": ID}).json()
    assert content == {"orders": {"0": 1, "1": 2}, "topic ids": {"orders": "MDEyMzQ1Njc4OWFiY2RlZg=="}}
    assert list(content["orders"]) == ["0", "1"], "equal offsets are equal texts"
    assert QueryOffset.parse(content) == QueryOffset({A: 1, B: 2}, {"orders": ID})
    assert QueryOffset({A: 1}).json() == {"orders": {"0": 1}}


def test_epochs_are_kept_where_nothing_was_added() -> None:
    start = QueryOffset({A: 1, B: 2}, {}, {A: 0, B: 0})
    found = QueryOffset({A: 1, B: 3}, {}, {A: 5, B: 5}).after(start)
    assert found.json() == {"orders": {"0": 1, "1": 3}, "leader epochs": {"orders": {"0": 0, "1": 5}}}
    assert QueryOffset.parse(found.json()) == found


@pytest.mark.parametrize("told", [lambda offset: offset, json.dumps], ids=["classic", "Connect"])
def test_lag_of_a_progress(told: Any) -> None:
    source = {"endOffset": told({"orders": {"0": 90, "1": 50}}), "latestOffset": told(ENDS.json())}
    found = offsets_behind_latest(SimpleNamespace(json=json.dumps({"sources": [source]})))
    expected = {"minOffsetsBehindLatest": 0, "maxOffsetsBehindLatest": 10, "avgOffsetsBehindLatest": 5}
    assert found == expected
    assert offsets_behind_latest(SimpleNamespace(json='{"sources": [{}]}')) == {}


SIZES: Final = st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 1000), min_size=1)


@given(SIZES, st.integers(1, 500))
def test_a_limit_is_shared_in_proportion_and_starves_nobody(
    sizes: dict[TopicPartition, int], records_max: int
) -> None:
    begins = dict.fromkeys(sizes, 7)
    ends = QueryOffset({each: 7 + size for each, size in sizes.items()})
    found = limited(begins, ends, records_max)
    taken = records_between(begins, found)
    assert taken <= records_max + len(sizes), "a partition with less than one record's share gets one"
    for partition, size in sizes.items():
        advance = found.offsets[partition] - 7
        assert 0 <= advance <= size
        assert advance or not size


def test_a_limit_above_everything_changes_nothing() -> None:
    assert limited({A: 0, B: 0}, ENDS, 1000) == ENDS


def test_new_partitions_and_recreated_topics_begin_at_the_logs_start() -> None:
    start = QueryOffset({A: 40}, {"orders": ID})
    assert start.begins(ENDS, {B: 3}) == {A: 40, B: 3}
    recreated = QueryOffset({A: 40, B: 9}, {"orders": OTHER_ID})
    assert recreated.begins(ENDS, {A: 0, B: 0}) == {A: 0, B: 0}


@pytest.mark.parametrize(
    ("start", "log_starts", "lost"),
    [
        (QueryOffset({A: 40, B: 50}, {"orders": ID}), {}, []),
        (QueryOffset({A: 40, B: 50}), {}, []),
        (QueryOffset({A: 40}, {"orders": ID}), {B: 0}, []),
        (
            QueryOffset({A: 40}, {"orders": ID}),
            {B: 3},
            ["orders-1 is new and begins at offset 3 instead of 0"],
        ),
        (
            QueryOffset({A: 101, B: 50}, {"orders": ID}),
            {},
            ["orders-0 ends at offset 100 now, and the query had read it up to 101"],
        ),
        (
            QueryOffset({A: 40, B: 50, C: 9}, {"orders": ID}),
            {},
            ["orders-2 is gone, and the query had read it up to offset 9"],
        ),
        (
            QueryOffset({A: 140, B: 50}, {"orders": OTHER_ID}),
            {A: 0, B: 0},
            ["topic orders was deleted and created again"],
        ),
    ],
)
def test_what_is_lost_is_said(
    start: QueryOffset, log_starts: dict[TopicPartition, int], lost: list[str]
) -> None:
    assert lost_between(start, ENDS, log_starts) == lost


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=5),
    st.none() | st.integers(1, 20),
    st.none() | st.integers(1, 300),
)
def test_divided_ranges_are_the_whole(
    sizes: list[int], tasks_min: int | None, records_max: int | None
) -> None:
    wholes = [OffsetRange(TopicPartition("t", at), 5, 5 + size) for at, size in enumerate(sizes)]
    parts = divided(wholes, tasks_min, records_max)
    for whole in wholes:
        mine = [part for part in parts if part.partition == whole.partition]
        if not whole.size:
            assert mine == []
            continue
        assert mine[0].first == whole.first
        assert mine[-1].end == whole.end
        assert [part.first for part in mine[1:]] == [part.end for part in mine[:-1]]
        assert all(part.size > 0 for part in mine)
    if records_max is not None:
        assert all(part.size <= records_max for part in parts)


def test_divided_like_spark() -> None:
    """The cases of KafkaOffsetRangeCalculatorSuite."""

    def sizes(given: list[int], tasks_min: int | None, records_max: int | None = None) -> list[int]:
        wholes = [OffsetRange(TopicPartition("t", at), 0, size) for at, size in enumerate(given)]
        return [part.size for part in divided(wholes, tasks_min, records_max)]

    assert sizes([5, 1], None) == [5, 1]
    assert sizes([5], 4) == [1, 1, 1, 2]
    assert sizes([5, 10], 3) == [5, 5, 5]
    assert sizes([1, 1, 1000], 4) == [1, 1, 500, 500]
    assert sizes([50], None, 15) == [12, 12, 13, 13]
    assert sizes([], 5) == []
