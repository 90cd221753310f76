"""Random logs are copied in random responses and compared with a model that copies record by record."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches import reencoding as batch_opening
from sparkmirror.batches import tiny_batches
from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.batch_copying import MERGED_BYTES_MAX, CopyRules, Step, copy_batches
from sparkmirror.batches.compression import CODECS
from sparkmirror.batches.cycles import CycleError, CycleFilter, KnownWriters, UnknownWriterError
from sparkmirror.batches.provenance_header import HEADER, ProvenanceHeader
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    OutgoingBatch,
    iterate_batches,
    rewrite_header,
)
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.incidents import OnLoop
from tests.support.batches import NOW_MS, Rec, decode, decompress, encode, joined, marker, patch

DELETE_HORIZON = 0x40
GZIP = 1
ALL_CODECS = range(len(CODECS))


class Logged(NamedTuple):
    """A batch of a log and its records as a consumer reads them, none for a control batch."""

    data: bytearray
    base_offset: int
    last_offset: int
    records: tuple[Rec, ...]


def ordinary(base_offset: int, deltas: Sequence[int], last: int, codec: int, attributes: int) -> Logged:
    """Make a batch in which compaction left the records at `deltas`; `last` is its last offset delta."""
    records = [
        Rec(delta, NOW_MS + 7 * delta, None if delta % 3 == 0 else b"k%d" % delta, b"v%d" % base_offset * 9)
        for delta in deltas
    ]
    append_time = NOW_MS + 10_000 + base_offset
    header = {"base_offset": base_offset, "last_offset_delta": last, "attributes": codec | attributes}
    if attributes & LOG_APPEND_TIME:
        header["max_timestamp"] = append_time
        records = [record._replace(timestamp=append_time) for record in records]
    data = encode(records, codec=codec, **header) if records else _emptied(header)
    seen = tuple(record._replace(offset=base_offset + record.offset) for record in records)
    return Logged(data, base_offset, base_offset + last, seen)


def _emptied(header: dict[str, int]) -> bytearray:
    return patch(encode([Rec(0)])[:HEADER_BYTES], **header, length=HEADER_BYTES - 12, record_count=0)


@st.composite
def logs(draw: Callable[[Any], Any]) -> list[Logged]:
    log: list[Logged] = []
    offset = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 6))):
        offset += draw(st.sampled_from([0, 0, 0, 1, 5]))
        if draw(st.integers(0, 5)) == 0:
            log.append(Logged(marker(offset, 77, commit=draw(st.booleans())), offset, offset, ()))
        else:
            last = draw(st.integers(0, 5))
            kept = draw(st.just(set(range(last + 1))) | st.sets(st.integers(0, last)))
            attributes = draw(st.sampled_from([0, 0, LOG_APPEND_TIME, DELETE_HORIZON]))
            log.append(ordinary(offset, sorted(kept), last, draw(st.sampled_from([0, 1, 3])), attributes))
        offset = log[-1].last_offset + 1
    return log


RULES = st.builds(
    CopyRules,
    target_stamps_append_time=st.booleans(),
    batch_bytes_max=st.sampled_from([100, 200, 1048588]),
    codec=st.sampled_from([None, None, 0, 3]),
    merged_bytes_max=st.sampled_from([0, 250, 65536]),
)


@contextmanager
def columns_from(records: int, tiny: int = tiny_batches.MANY_BATCHES) -> Iterator[None]:
    """Open batches as columns from `records` records on, and check `tiny` tiny batches together."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(batch_opening, "MANY_RECORDS", records)
        patches.setattr(tiny_batches, "MANY_BATCHES", tiny)
        yield


def copy(log: Sequence[Logged], position: int, rules: CopyRules) -> Iterator[Step]:
    response = joined([batch.data for batch in log])
    return copy_batches(response, position, rules, None)


def stored_records(batches: Sequence[OutgoingBatch], *, times: bool = True) -> list[Rec]:
    """Decode batches as the target would store them, with upstream offsets; each must be valid there."""
    records = []
    for batch in batches:
        rewrite_header(batch.data, 5, 0, 0)
        (sent,) = iterate_batches(batch.data)
        assert sent.header.base_offset == 0
        assert sent.header.is_contiguous
        assert not sent.header.attributes & ~CODEC_MASK
        inside = decode(batch.data)
        assert [record.offset for record in inside] == list(range(len(batch.offsets)))
        records += [
            Rec(offset, record.timestamp if times else 0, *record[2:])
            for record, offset in zip(inside, batch.offsets, strict=True)
        ]
    return records


@given(
    log=logs(),
    rules=RULES,
    skipped=st.integers(0, 25),
    cuts=st.sets(st.integers(1, 6)),
    many=st.sampled_from([1, 5, 200]),
    tiny=st.sampled_from([1, 2, 200]),
)
def test_every_record_of_random_logs_is_copied_from_any_position(
    log: list[Logged], rules: CopyRules, skipped: int, cuts: set[int], many: int, tiny: int
) -> None:
    first = position = log[0].base_offset + skipped
    expected = [record for batch in log for record in batch.records if record.offset >= position]
    if rules.target_stamps_append_time:
        expected = [record._replace(timestamp=0) for record in expected]
    copied: list[Rec] = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    for start, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007 - an empty response is one too
        with columns_from(many, tiny):
            steps = list(copy(log[start:end], position, rules))
        for step in steps:
            copied += stored_records(step.batches, times=not rules.target_stamps_append_time)
            assert step.position > position
            assert all(
                position <= offset < step.position for batch in step.batches for offset in batch.offsets
            )
            position = step.position
    assert copied == expected
    assert position == max(first, log[-1].last_offset + 1)


@given(log=logs(), rules=RULES)
def test_batches_have_the_configured_codec_and_size(log: list[Logged], rules: CopyRules) -> None:
    log, rules = [batch for batch in log if batch.records], replace(rules, merged_bytes_max=0)
    for batch, step in zip(log, copy(log, 0, rules), strict=True):
        for outgoing in step.batches:
            codec = batch.data[22] & CODEC_MASK if rules.codec is None else rules.codec
            assert outgoing.data[22] & CODEC_MASK == codec
            assert outgoing.max_timestamp == max(record.timestamp for record in batch.records) or (
                len(step.batches) > 1
            )


def one_record_batches(count: int, codec: int = 0) -> list[Logged]:
    return [ordinary(10 + at, [0], 0, codec, 0) for at in range(count)]


MERGING = CopyRules(merged_bytes_max=MERGED_BYTES_MAX)


@pytest.mark.parametrize("count", [2, 20, 500])
@pytest.mark.parametrize("codec", ALL_CODECS)
def test_consecutive_tiny_batches_are_merged(count: int, codec: int) -> None:
    log = one_record_batches(count, codec)
    (step,) = copy(log, 10, MERGING)
    (outgoing,) = step.batches
    assert (outgoing.offsets, step.position) == (range(10, 10 + count), 10 + count)
    assert outgoing.data[22] & CODEC_MASK == codec
    assert stored_records(step.batches) == [record for batch in log for record in batch.records]


def test_merged_batches_do_not_exceed_their_maximum_size() -> None:
    log = one_record_batches(100)
    size = len(log[-1].data)
    steps = list(copy(log, 10, CopyRules(merged_bytes_max=10 * size)))
    assert [len(batch.offsets) for step in steps for batch in step.batches] == [10] * 10
    assert [step.position for step in steps] == list(range(20, 120, 10))


def test_consecutive_compacted_batches_are_merged() -> None:
    log = [ordinary(0, [0, 4], 4, 0, 0), ordinary(9, [1, 2, 5], 5, 0, 0)]
    (step,) = copy(log, 0, MERGING)
    (outgoing,) = step.batches
    assert list(outgoing.offsets) == [0, 4, 10, 11, 14]
    assert step.position == 15


def test_single_tiny_batch_is_sent_unchanged() -> None:
    response = joined([one_record_batches(1)[0].data])
    (step,) = copy_batches(response, 10, MERGING, None)
    assert step.batches[0].data.obj is response.obj


def test_batch_of_ordinary_size_is_not_merged() -> None:
    """The batch's bytes are sent unchanged, in order with the batches before and after it."""
    large = encode([Rec(0, value=b"v" * 1100)], base_offset=12)
    log = [*one_record_batches(2), Logged(large, 12, 12, ()), ordinary(13, [0], 0, 0, 0)]
    steps = list(copy(log, 10, MERGING))
    assert [list(batch.offsets) for step in steps for batch in step.batches] == [[10, 11], [12], [13]]


def test_batches_of_different_codecs_are_not_merged() -> None:
    log = [batch for codec in (0, GZIP, 0) for batch in one_record_batches(2, codec)]
    log = [ordinary(at, [0], 0, batch.data[22] & CODEC_MASK, 0) for at, batch in enumerate(log)]
    steps = list(copy(log, 0, MERGING))
    assert [batch.data[22] & CODEC_MASK for step in steps for batch in step.batches] == [0, GZIP, 0]
    (step,) = copy(log, 0, replace(MERGING, codec=3))
    assert [batch.data[22] & CODEC_MASK for batch in step.batches] == [3]


def test_tiny_batches_with_markers_between_them_are_merged() -> None:
    log = [
        Logged(encode([Rec(0)], base_offset=0, attributes=0x10, producer_id=9), 0, 0, ()),
        Logged(marker(1, 9, commit=True), 1, 1, ()),
        Logged(encode([Rec(0)], base_offset=2, attributes=0x10, producer_id=9), 2, 2, ()),
        Logged(marker(3, 9, commit=True), 3, 3, ()),
    ]
    (step,) = copy(log, 0, MERGING)
    assert [list(batch.offsets) for batch in step.batches] == [[0, 2]]
    assert step.position == 4


def test_a_merged_batch_above_the_limit_is_split() -> None:
    steps = list(copy(one_record_batches(300), 10, replace(MERGING, batch_bytes_max=2000)))
    batches = [batch for step in steps for batch in step.batches]
    assert all(len(batch.data) <= 2000 for batch in batches)
    assert [offset for batch in batches for offset in batch.offsets] == list(range(10, 310))


@pytest.mark.parametrize("tiny", [1, 200])
@pytest.mark.parametrize("many", [1, 200])
def test_batches_before_a_corrupt_one_are_copied(many: int, tiny: int) -> None:
    """The corruption is found before or only after opening the batch with its neighbours."""
    first, second = (batch.data for batch in one_record_batches(2))
    lying = encode([Rec(0), Rec(1)], base_offset=12, attributes=4)
    for corrupt, cause in ((broken(12), "CRC"), (lying, "zstd")):
        copied: list[Step] = []
        steps = copy_batches(joined([first, second, corrupt]), 10, replace(MERGING, codec=0), None)
        with columns_from(many, tiny), pytest.raises(CorruptBatchError, match=f"offset 12: {cause}"):
            copied.extend(steps)
        assert [offset for step in copied for batch in step.batches for offset in batch.offsets] == [10, 11]
        assert copied[-1].position == 12


@pytest.mark.parametrize("many", [1, 200])
@pytest.mark.parametrize(("base", "last"), [(30, 2), (30, 0)])
def test_records_outside_of_their_batch_are_corrupt(many: int, base: int, last: int) -> None:
    data = encode([Rec(0), Rec(9)], base_offset=base, last_offset_delta=last)
    with columns_from(many), pytest.raises(CorruptBatchError, match=f"offset {base}: .* do not increase"):
        list(copy_batches(joined([data]), base, CopyRules(), None))


def test_a_large_batch_is_recompressed_without_being_opened() -> None:
    data = encode([Rec(at, NOW_MS + at, b"k", b"v" * 40) for at in range(100)], codec=3, base_offset=7)
    (step,) = copy_batches(joined([data]), 7, CopyRules(codec=4), None)
    (outgoing,) = step.batches
    assert outgoing.data[22] & CODEC_MASK == 4
    assert outgoing.offsets == range(7, 107)
    assert decompress(4, bytes(outgoing.data[HEADER_BYTES:])) == decompress(3, bytes(data[HEADER_BYTES:]))


def test_a_batch_that_grows_above_the_limit_in_its_new_codec_is_split() -> None:
    data = encode([Rec(at, NOW_MS + at, b"k", b"v" * 40) for at in range(100)], codec=3)
    (step,) = copy_batches(joined([data]), 0, CopyRules(codec=0, batch_bytes_max=2000), None)
    assert all(len(batch.data) <= 2000 for batch in step.batches)
    assert [offset for batch in step.batches for offset in batch.offsets] == list(range(100))


def test_complete_batch_is_sent_without_a_copy() -> None:
    """The bytes to send are those of the fetch response, without a copy."""
    response = joined([ordinary(40, [0, 1, 2], 2, GZIP, 0).data])
    (step,) = copy_batches(response, 40, CopyRules(), None)
    (outgoing,) = step.batches
    assert outgoing.offsets == range(40, 43)
    assert outgoing.data.obj is response.obj
    assert step.position == 43


def test_unchanged_batch_above_the_limit_is_not_split() -> None:
    log = [ordinary(0, range(6), 5, 0, 0)]
    (step,) = copy(log, 0, CopyRules(batch_bytes_max=100))
    assert len(step.batches) == 1


def test_rewritten_batch_is_split_at_the_limit() -> None:
    log = [ordinary(0, [0, 2, 3, 5], 5, 0, 0)]
    (step,) = copy(log, 0, CopyRules(batch_bytes_max=100))
    assert [list(batch.offsets) for batch in step.batches] == [[0], [2], [3], [5]]


def test_batch_without_records_advances_the_position() -> None:
    log = [Logged(marker(3, 9, commit=True), 3, 3, ()), ordinary(4, [], 4, 0, 0)]
    assert list(copy(log, 3, CopyRules())) == [Step([], 4), Step([], 9)]


@pytest.mark.parametrize("tiny", [1, 200])
def test_aborted_batches_among_tiny_ones_are_not_copied(tiny: int) -> None:
    batches = [
        encode([Rec(0)], base_offset=0, attributes=0x10, producer_id=9),
        marker(1, 9, commit=False),
        encode([Rec(0)], base_offset=2, attributes=0x10, producer_id=9),
        marker(3, 9, commit=True),
    ]
    for aborted, offsets in (([(9, 0)], [2]), ([], [0, 2])):
        with columns_from(1, tiny):
            steps = list(copy_batches(joined(batches), 0, MERGING, AbortedTransactions(aborted)))
        assert [list(batch.offsets) for step in steps for batch in step.batches] == [offsets]
        assert steps[-1].position == 4


@pytest.mark.parametrize("cut", [1, 8, 30, 61, 75])
def test_incomplete_batch_is_left_for_the_next_response(cut: int) -> None:
    log = one_record_batches(40)
    response = joined([*(batch.data for batch in log), ordinary(50, [0], 0, 0, 0).data[:cut]])
    (step,) = copy_batches(response, 10, MERGING, None)
    assert (step.position, [batch.offsets for batch in step.batches]) == (50, [range(10, 50)])


def test_error_of_an_old_format_among_tiny_batches_has_the_offset() -> None:
    log = one_record_batches(40)
    patch(log[30].data, magic=1)
    copied: list[Step] = []
    with pytest.raises(CorruptBatchError, match="offset 40: record format v1"):
        copied.extend(copy_batches(joined([batch.data for batch in log]), 10, MERGING, None))
    assert (len(copied), copied[0].position) == (1, 40)


def test_aborted_batch_advances_the_position() -> None:
    data = encode([Rec(0), Rec(1)], base_offset=7, attributes=0x10, producer_id=9)
    steps = list(copy_batches(joined([data]), 7, CopyRules(), AbortedTransactions([(9, 7)])))
    assert steps == [Step([], 9)]


def test_markers_before_the_position_still_end_transactions() -> None:
    """A fetch from inside a batch returns the whole batch and preceding ones."""
    batches = [
        encode([Rec(0)], base_offset=5, attributes=0x10, producer_id=9),
        marker(6, 9, commit=False),
        encode([Rec(0)], base_offset=7, attributes=0x10, producer_id=9),
    ]
    (step,) = copy_batches(joined(batches), 7, CopyRules(), AbortedTransactions([(9, 5)]))
    assert [list(batch.offsets) for batch in step.batches] == [[7]]


def test_read_uncommitted_copies_aborted_records_and_drops_markers() -> None:
    data = encode([Rec(0), Rec(1)], base_offset=7, attributes=0x10, producer_id=9)
    steps = list(copy_batches(joined([data, marker(9, 9, commit=False)]), 7, CopyRules(), None))
    assert [step.position for step in steps] == [9, 10]
    assert [list(batch.offsets) for step in steps for batch in step.batches] == [[7, 8]]


def broken(base_offset: int) -> bytearray:
    data = encode([Rec(0)], base_offset=base_offset)
    data[-1] ^= 1
    return data


def test_error_of_a_wrong_crc_has_the_offset_and_earlier_batches_are_copied() -> None:
    steps = copy_batches(joined([encode([Rec(0)]), broken(1)]), 0, CopyRules(), None)
    assert next(steps).position == 1
    with pytest.raises(CorruptBatchError, match="offset 1: CRC mismatch"):
        next(steps)


def test_crcs_are_not_checked_if_disabled() -> None:
    rules = replace(CopyRules(), check_crcs=False)
    assert [step.position for step in copy_batches(joined([broken(4)]), 4, rules, None)] == [5]


def test_error_of_an_unreadable_batch_has_the_offset() -> None:
    data = encode([Rec(0), Rec(1)], base_offset=30, attributes=4)
    with pytest.raises(CorruptBatchError, match="offset 30: zstd data can't be decompressed"):
        list(copy_batches(joined([data]), 31, CopyRules(), None))


OURS, THEIRS = 55, 56


@given(
    log=logs(),
    rules=RULES,
    ours=st.sets(st.integers(0, 5)),
    tiny=st.sampled_from([1, 2, 200]),
)
def test_cycled_batches_are_not_copied(
    log: list[Logged], rules: CopyRules, ours: set[int], tiny: int
) -> None:
    """Unknown producer ids are looked up, and the log is copied again from there."""
    for number, batch in enumerate(log):
        patch(batch.data, producer_id=OURS if number in ours else THEIRS)
    expected = [record for number, batch in enumerate(log) if number not in ours for record in batch.records]
    writers = KnownWriters()
    loops = CycleFilter(writers)
    copied: list[Rec] = []
    position, lookups = log[0].base_offset, 0
    while True:
        response = joined([bytes(batch.data) for batch in log])
        try:
            with columns_from(200, tiny):
                for step in copy_batches(response, position, rules, None, loops):
                    copied += stored_records(step.batches)
                    position = step.position
        except UnknownWriterError as unknown:
            lookups += 1
            writers.learn({OURS} & {unknown.producer_id}, [THEIRS] if unknown.producer_id == THEIRS else [])
        else:
            break
    stamped = rules.target_stamps_append_time
    assert [record._replace(timestamp=0) if stamped else record for record in copied] == [
        record._replace(timestamp=0) if stamped else record for record in expected
    ]
    assert position == log[-1].last_offset + 1
    assert lookups <= 2
    assert loops.records == sum(len(log[number].records) for number in ours if number < len(log))


def test_records_before_a_cycle_that_stops_the_partition_are_copied() -> None:
    writers = KnownWriters()
    writers.learn([OURS], [THEIRS])
    batches = [encode([Rec(0)], producer_id=THEIRS, base_offset=number) for number in range(30)]
    batches.append(encode([Rec(0)], producer_id=OURS, base_offset=30))
    copied: list[Rec] = []
    steps = copy_batches(joined(batches), 0, MERGING, None, CycleFilter(writers, OnLoop.FAIL))
    with pytest.raises(CycleError, match="offsets 30 to 30"):
        copied.extend(record for step in steps for record in stored_records(step.batches))
    assert [record.offset for record in copied] == list(range(30))


@given(log=logs(), rules=RULES, skipped=st.integers(0, 5))
def test_every_record_is_given_a_header(log: list[Logged], rules: CopyRules, skipped: int) -> None:
    writers = KnownWriters()
    writers.learn([], [5])  # the id that `stored_records` stamps
    position = log[0].base_offset + skipped
    response = joined([batch.data for batch in log])
    loops = CycleFilter(writers, provenance=ProvenanceHeader("A", "B"))
    steps = list(copy_batches(response, position, rules, None, loops))
    copied = [record for step in steps for record in stored_records(step.batches)]
    expected = [record for batch in log for record in batch.records if record.offset >= position]
    assert [(record.offset, record.key, record.value) for record in copied] == [
        (record.offset, record.key, record.value) for record in expected
    ]
    assert all(record.headers == ((HEADER.decode(), b"A"),) for record in copied)
    assert [step.position for step in steps][-1:] in ([log[-1].last_offset + 1], [])
    again = CycleFilter(writers, provenance=ProvenanceHeader("B", "A"))
    for batch in (batch for step in steps for batch in step.batches):
        for step in copy_batches(joined([bytes(batch.data)]), 0, rules, None, again):
            assert step.batches == []
    assert again.records == len(copied)


MB = 1 << 20
LIMITED = CopyRules(merged_bytes_max=MERGED_BYTES_MAX, decompressed_bytes_max=MB)


def zeros(base_offset: int, size: int, *, codec: int = 4, attributes: int = 0) -> bytearray:
    """A batch of a record that compresses to next to nothing."""
    record = Rec(0, NOW_MS, b"key", bytes(size))
    return encode([record], codec=codec, base_offset=base_offset, attributes=codec | attributes)


def small(base_offset: int) -> bytearray:
    return encode([Rec(0, NOW_MS, b"key", b"small")], base_offset=base_offset, attributes=LOG_APPEND_TIME)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_must_be_opened_and_is_too_large_is_corrupt_alone(codec: int) -> None:
    response = joined([small(0), zeros(1, 2 * MB, codec=codec, attributes=LOG_APPEND_TIME), small(2)])
    steps = copy_batches(response, 0, LIMITED, None)
    assert [outgoing.offsets for outgoing in next(steps).batches] == [range(1)]
    with pytest.raises(CorruptBatchError, match=r"offset 1: .* 1048576 .* batch\.decompressed\.bytes\.max"):
        next(steps)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_needs_not_be_opened_may_hold_anything(codec: int) -> None:
    data = zeros(0, 2 * MB, codec=codec)
    (step,) = copy_batches(joined([data]), 0, replace(LIMITED, merged_bytes_max=0), None)
    (outgoing,) = step.batches
    assert outgoing.data[HEADER_BYTES:] == data[HEADER_BYTES:]


@pytest.mark.parametrize("count", [3, tiny_batches.MANY_BATCHES + 3])
def test_tiny_batches_that_are_too_large_together_are_not_merged(count: int) -> None:
    """Each could be opened; they need not be."""
    log = [zeros(at, MB // 2) for at in range(count)]
    assert max(map(len, log)) < 1024
    steps = list(copy_batches(joined(log), 0, LIMITED, None))
    assert [outgoing.offsets for step in steps for outgoing in step.batches] == [
        range(at, at + 1) for at in range(count)
    ]


@pytest.mark.parametrize("count", [3, tiny_batches.MANY_BATCHES + 3])
def test_batches_that_must_be_opened_and_are_too_large_together_are_opened_one_by_one(count: int) -> None:
    log = [zeros(at, MB // 2, attributes=LOG_APPEND_TIME) for at in range(count)]
    steps = list(copy_batches(joined(log), 0, replace(LIMITED, batch_bytes_max=MB), None))
    assert [outgoing.offsets for step in steps for outgoing in step.batches] == [
        range(at, at + 1) for at in range(count)
    ]


def test_a_batch_with_more_records_than_the_limit_allows_is_corrupt_before_it_is_opened() -> None:
    data = encode(
        [Rec(0)], record_count=MB // 128 + 1, last_offset_delta=MB // 128, attributes=LOG_APPEND_TIME
    )
    with pytest.raises(CorruptBatchError, match=r"8193 records are more than one for each 128 bytes"):
        list(copy_batches(joined([data]), 0, LIMITED, None))


def test_records_of_more_than_16_mb_are_written_as_several_batches() -> None:
    """However well they compress: packing them takes memory."""
    records = [Rec(at, NOW_MS, b"key", bytes(1 << 17)) for at in range(160)]
    data = encode(records, codec=4, attributes=4 | LOG_APPEND_TIME)
    steps = copy_batches(joined([data]), 0, CopyRules(), None)
    written = [outgoing.offsets for step in steps for outgoing in step.batches]
    assert written == [range(80), range(80, 160)]
