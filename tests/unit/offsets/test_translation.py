"""Offset translation with the vectors of Java's OffsetSyncStoreTest, and against random logs."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.translation import BEFORE_HISTORY, Place, SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync

ORDERS = TopicPartition("orders", 0)


def history(pairs: Iterable[tuple[int, int]]) -> SyncHistory:
    syncs = [OffsetSync(ORDERS, *pair) for pair in pairs]
    made = SyncHistory(syncs[0])
    for sync in syncs[1:]:
        made.add(sync)
    return made


def kept(offsets: Iterable[int]) -> list[int]:
    return [sync.upstream_offset for sync in history((offset, offset) for offset in offsets).syncs]


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        (range(0, 1001, 10), [1000, 990, 960, 900, 840, 720, 480, 0]),
        (range(0, 10_001, 10), [10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0]),
        (range(1000, 10_001, 10), [10000, 9990, 9970, 9940, 9880, 9640, 9160, 8680, 6760, 4840, 1000]),
        (range(1001), [1000, 999, 998, 996, 992, 976, 960, 896, 768, 512, 0]),
        (
            range(0, 100_001, 100),
            [100000, 99900, 99800, 99600, 99200, 97600, 96000, 89600, 76800, 51200, 0],
        ),
        (range(4), [3, 2, 0]),
        (range(8), [7, 6, 4, 0]),
        (range(16), [15, 14, 12, 8, 0]),
    ],
)
def test_history_keeps_the_same_syncs_as_java(offsets: Iterable[int], expected: list[int]) -> None:
    assert kept(offsets) == expected


def test_offsets_between_syncs_are_translated_to_one_after_the_sync() -> None:
    syncs = history([(100, 200), (110, 205)])
    assert [syncs.translate(offset) for offset in (99, 100, 101, 109, 110, 111, 500)] == [
        BEFORE_HISTORY,
        200,
        201,
        201,
        205,
        206,
        206,
    ]


def test_sync_with_an_older_upstream_offset_discards_the_former_ones() -> None:
    syncs = history([(100, 200), (110, 210), (5, 211)])
    assert [syncs.translate(offset) for offset in (4, 5, 105, 200)] == [BEFORE_HISTORY, 211, 212, 212]


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 3)), min_size=1, max_size=200), st.data())
def test_translation_skips_no_unread_record(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    """`steps` are the offset gaps between synced records at the source and at the target."""
    upstream = downstream = 0
    pairs = []
    for gap, written in steps:
        upstream, downstream = upstream + gap, downstream + min(gap, written)
        pairs.append((upstream, downstream))
    syncs = history(pairs)
    committed = data.draw(st.integers(0, upstream + 10))
    translated = syncs.translate(committed)
    read = [pair for pair in pairs if pair[0] <= committed]
    if not read:
        assert translated == BEFORE_HISTORY
    elif translated != BEFORE_HISTORY:
        # At most one after the last synced record that was read, and exactly at it if it is the next to read.
        up, down = read[-1]
        assert translated <= (down if up == committed else down + 1)
        assert translated >= pairs[0][1]
    later = syncs.translate(committed + data.draw(st.integers(0, 1000)))
    assert later >= translated


class Copied(NamedTuple):
    """A part of a log: missing offsets on both sides, state records without gaps."""

    gap: int
    jump: int
    records: int
    is_synced: bool
    has_run_length: bool
    """Whether the sync has the length of its run. Java's do not."""


LOGS = st.lists(
    st.builds(
        Copied, st.integers(0, 20), st.integers(0, 5), st.integers(1, 40), st.booleans(), st.booleans()
    ),
    min_size=1,
    max_size=30,
)


@given(LOGS)
def test_translation_is_exact_in_known_runs_and_not_behind_javas_elsewhere(log: list[Copied]) -> None:
    upstream = downstream = 0
    where: dict[int, int] = {}
    known: set[int] = set()
    ours: SyncHistory | None = None
    javas: SyncHistory | None = None
    for gap, jump, count, is_synced, has_run_length in log:
        upstream, downstream = upstream + gap, downstream + jump
        where.update((upstream + at, downstream + at) for at in range(count))
        upstream, downstream = upstream + count, downstream + count
        if not is_synced:
            continue
        sync, run = OffsetSync(ORDERS, upstream - 1, downstream - 1), count if has_run_length else 1
        known.update(range(upstream - run, upstream))
        if ours is None or javas is None:
            ours, javas = SyncHistory(sync, run), SyncHistory(sync)
        else:
            ours.add(sync, run)
            javas.add(sync)
    if ours is None or javas is None:
        return
    last = BEFORE_HISTORY
    for committed in range(upstream + 3):
        translated = ours.translate(committed)
        following = [down for up, down in where.items() if up >= committed]
        assert translated <= (min(following) if following else downstream), "a record would be skipped"
        assert translated >= javas.translate(committed), "more would be read again than with Java"
        assert translated >= last
        if committed in known:
            assert translated == where[committed]
        last = translated


def test_consecutive_runs_are_merged() -> None:
    syncs = SyncHistory(OffsetSync(ORDERS, 9, 109), 10)
    syncs.add(OffsetSync(ORDERS, 19, 119), 10)
    syncs.add(OffsetSync(ORDERS, 49, 140), 5)
    assert [syncs.translate(offset) for offset in (0, 7, 19, 20, 44, 45, 49, 50)] == [
        100,
        107,
        119,
        120,
        120,
        136,
        140,
        141,
    ]


def test_sync_after_lost_target_records_discards_the_former_ones() -> None:
    syncs = SyncHistory(OffsetSync(ORDERS, 99, 99), 100)
    syncs.add(OffsetSync(ORDERS, 109, 49), 10)
    assert [syncs.translate(offset) for offset in (50, 100, 109)] == [BEFORE_HISTORY, 40, 49]


def test_run_that_contradicts_the_newest_sync_discards_the_former_ones() -> None:
    """The target was recreated and filled beyond that sync; its first syncs were removed by compaction."""
    syncs = SyncHistory(OffsetSync(ORDERS, 100, 100))
    syncs.add(OffsetSync(ORDERS, 300, 199), 200)
    assert [syncs.translate(offset) for offset in (100, 101, 150, 300)] == [0, 0, 49, 199]


@pytest.mark.parametrize(
    ("first", "run"),
    [(OffsetSync(ORDERS, 70, 0), 1), (OffsetSync(ORDERS, 99, 29), 30)],
    ids=["Java's", "own"],
)
def test_a_group_behind_the_source_s_log_start_gets_the_first_record_of_the_target(
    first: OffsetSync, run: int
) -> None:
    syncs = SyncHistory(first, run)
    assert [syncs.translate(offset) for offset in (0, 50, 69, 70)] == [0, 0, 0, 0]
    assert syncs.place(50) == Place(0, 0)


@pytest.mark.parametrize(("upstream", "downstream"), [(70, 1), (99, 30)])
def test_what_is_before_the_first_known_record_of_the_target_may_be_what_the_group_needs(
    upstream: int, downstream: int
) -> None:
    assert SyncHistory(OffsetSync(ORDERS, upstream, downstream)).translate(50) == BEFORE_HISTORY


class Change(Enum):
    COPY = "the next records are copied"
    REPEAT = "the last records are copied again, as the mirror was killed"
    TRUNCATE = "the source loses its last records and continues from there"
    RECREATE = "the target is deleted and created again"


class Event(NamedTuple):
    change: Change
    gap: int
    records: int
    is_synced: bool
    """Whether a reader sees the sync of the first record."""
    has_run_length: bool


EVENTS = st.lists(
    st.builds(
        Event, st.sampled_from(Change), st.integers(0, 3), st.integers(1, 20), st.booleans(), st.booleans()
    ),
    min_size=1,
    max_size=20,
)


class State(NamedTuple):
    """The logs and the offset syncs after an event."""

    written: list[RunSync]
    copies: Mapping[int, list[int]]
    """The offsets in the target's current log of each record that the source has."""
    upstream_end: int
    downstream_end: int


def states_after(events: list[Event]) -> Iterator[State]:
    upstream = downstream = 0
    copies: dict[int, list[int]] = {}
    for event in events:
        match event.change:
            case Change.REPEAT | Change.TRUNCATE:
                upstream = max(0, upstream - event.records)
                if event.change is Change.TRUNCATE:
                    copies = {offset: at for offset, at in copies.items() if offset < upstream}
            case Change.RECREATE:
                downstream, copies = 0, {}
            case Change.COPY:
                upstream += event.gap
        first = OffsetSync(ORDERS, upstream, downstream)
        for at in range(event.records):
            copies.setdefault(upstream + at, []).append(downstream + at)
        upstream, downstream = upstream + event.records, downstream + event.records
        last = RunSync(OffsetSync(ORDERS, upstream - 1, downstream - 1), event.records)
        written = [RunSync(first)] if event.is_synced or not event.has_run_length else []
        written += [last if event.has_run_length else RunSync(last.sync)]
        yield State(written, copies, upstream, downstream)


def with_syncs(syncs: SyncHistory | None, written: Iterable[RunSync]) -> SyncHistory:
    for sync in written:
        if syncs is None:
            syncs = SyncHistory(*sync)
        else:
            syncs.add(*sync)
    assert syncs is not None
    return syncs


@given(EVENTS)
def test_translation_skips_no_record_after_changes_of_both_logs(events: list[Event]) -> None:
    syncs: SyncHistory | None = None
    for state in states_after(events):
        syncs, before = with_syncs(syncs, state.written), BEFORE_HISTORY
        for committed in range(state.upstream_end + 2):
            translated = syncs.translate(committed)
            assert translated >= before
            before = translated
            assert all(at[-1] >= translated for offset, at in state.copies.items() if offset >= committed)


@given(EVENTS)
def test_reversed_translation_skips_no_record_after_changes_of_both_logs(events: list[Event]) -> None:
    """A group has read a record if it has read any of its copies."""
    syncs: SyncHistory | None = None
    for state in states_after(events):
        syncs = with_syncs(syncs, (sync.reversed("there.orders") for sync in state.written))
        assert all(sync.topic_partition.topic == "there.orders" for sync in syncs.syncs)
        before = BEFORE_HISTORY
        for committed in range(state.downstream_end + 2):
            translated = syncs.translate(committed)
            assert translated >= before
            before = translated
            assert translated <= state.upstream_end
            assert all(offset >= translated for offset, at in state.copies.items() if at[0] >= committed)


def test_translation_there_and_back_returns_the_same_offset_inside_runs() -> None:
    sync = RunSync(OffsetSync(ORDERS, 149, 19), 20)
    there, back = with_syncs(None, [sync]), with_syncs(None, [sync.reversed("there.orders")])
    for offset in range(130, 151):
        assert back.translate(there.translate(offset)) == offset
