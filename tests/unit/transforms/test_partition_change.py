"""Chains of transforms on batches, compared with the same chains over single records."""

import random
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sparkmirror.batches.batch_copying import CopyRules, copy_batches
from sparkmirror.batches.reencoding import Change, ChangeFailedError, carried
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.transforms.chain import (
    Chain,
    DropHeaders,
    Filter,
    Function,
    HasHeaderKey,
    InsertHeader,
    Link,
    Predicate,
    RecordIsTombstone,
    TopicNameMatches,
    Transform,
)
from sparkmirror.transforms.partition_change import PartitionChange
from tests.support.batches import NOW_MS, Rec, decode, encode, fetched, in_batches, joined

ORDERS: Final = TopicPartition("orders", 3)
MERGING: Final = CopyRules(merged_bytes_max=512 * 1024)
EU: Final = HasHeaderKey("eu")
BYTES_MAX: Final = 1 << 24


def change(*links: Link, tolerates: bool = False) -> PartitionChange:
    return PartitionChange(Chain(links, tolerates=tolerates), ORDERS)


def link(transform: Transform, predicate: Predicate | None = None, *, negates: bool = False) -> Link:
    return Link(transform, predicate, negates)


def here(name: str) -> Function:
    return Function(f"{__name__}:{name}")


def copied(
    response: memoryview, changing: Change, position: int = 0, rules: CopyRules = MERGING
) -> tuple[list[Rec], int]:
    """The records at their offsets of the source, and the position behind all of them."""
    found: list[Rec] = []
    for step in copy_batches(response, position, rules, None, None, changing):
        for batch in step.batches:
            records = decode(batch.data)
            assert [record.offset for record in records] == list(range(len(records)))
            pairs = zip(records, batch.offsets, strict=True)
            found += [record._replace(offset=offset) for record, offset in pairs]
        position = step.position
        assert all(record.offset < position for record in found)
    return found, position


def records_of(seed: int, count: int = 300) -> list[Rec]:
    """With gaps, several headers of one name, nulls and empty values."""
    rng = random.Random(seed)
    names = ["eu", "us", "größe", ""]
    contents = [None, b"", b"x" * 20]
    offset, found = 0, []
    for _ in range(count):
        offset += rng.choice([1, 1, 1, 4])
        headers = tuple((rng.choice(names), rng.choice(contents)) for _ in range(rng.choice([0, 0, 1, 3])))
        key, value = rng.choice(contents), rng.choice([*contents, b"%d" % offset])
        found.append(Rec(offset, NOW_MS + rng.randint(-9, 9), key, value, headers))
    return found


def expected(record: Rec, links: Sequence[Link]) -> Rec | None:
    """Do as Java does: one record after the other."""
    for each in links:
        match each.predicate:
            case HasHeaderKey(name):
                applies = any(key == name for key, _ in record.headers)
            case RecordIsTombstone():
                applies = record.value is None
            case _:
                applies = True
        if applies is each.negates:
            continue
        match each.transform:
            case Filter():
                return None
            case DropHeaders(names):
                kept = tuple(header for header in record.headers if header[0] not in names)
                record = record._replace(headers=kept)
            case InsertHeader(name, value):
                record = record._replace(headers=(*record.headers, (name, value)))
            case Function():
                if record.value is not None and record.value.endswith(b"7"):
                    return None
                record = record._replace(key=b"seen")
    return record


def seen(records: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out values that end with 7, and change all keys."""
    ends = pc.fill_null(pc.ends_with(records.column("value"), b"7"), fill_value=False)
    kept = records.filter(pc.invert(ends))
    return kept.set_column(0, records.schema.field("key"), pa.array([b"seen"] * len(kept), pa.binary()))


CHAINS: Final = {
    "filter": [link(Filter(), EU)],
    "filter others": [link(Filter(), EU, negates=True)],
    "filter tombstones": [link(Filter(), RecordIsTombstone())],
    "filter all": [link(Filter())],
    "drop": [link(DropHeaders(frozenset({"eu", ""})))],
    "drop of tombstones": [link(DropHeaders(frozenset({"eu"})), RecordIsTombstone())],
    "insert": [link(InsertHeader("from", b"us"))],
    "insert null": [link(InsertHeader("eu", None), EU, negates=True)],
    "insert, then look": [link(InsertHeader("eu", b"")), link(Filter(), EU)],
    "drop, then look": [
        link(DropHeaders(frozenset({"eu"}))),
        link(Filter(), EU),
        link(InsertHeader("n", b"")),
    ],
    "function": [link(here("seen"))],
    "function of some": [link(here("seen"), EU), link(InsertHeader("from", b"us"))],
    "function of no tombstones": [link(here("seen"), RecordIsTombstone(), negates=True)],
}


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("name", CHAINS)
def test_records_are_those_that_java_s_loop_makes(name: str, codec: int) -> None:
    chain = CHAINS[name]
    for seed in range(4):
        records = records_of(seed)
        sizes = [random.Random(seed).choice([1, 3, 90]) for _ in records]
        batches = in_batches(records, sizes, codec=codec)
        response = joined([bytes(batch.data) for batch in batches])
        end = records[-1].offset + 1
        wanted = [one for record in records if (one := expected(record, chain)) is not None]
        assert copied(response, change(*chain)) == (wanted, end)
        counting = change(*chain)
        assert len(copied(response, counting)[0]) + counting.filtered == len(records)
        later = records[100].offset
        assert copied(response, change(*chain), later)[0] == [one for one in wanted if one.offset >= later]


@pytest.mark.parametrize("name", CHAINS)
def test_a_comparison_sees_what_arrives(name: str) -> None:
    """At the offsets of the source, as `verify` reads it."""
    records = records_of(7, 60)
    (batch,) = in_batches(records, [60], codec=3)
    wanted = [one for record in records if (one := expected(record, CHAINS[name])) is not None]
    arriving = carried(batch, change(*CHAINS[name]), BYTES_MAX)
    found = [record for each in arriving for record in decode(each.data)]
    assert found == wanted


@pytest.mark.parametrize("codec", [0, 2])
@pytest.mark.parametrize(
    "chain",
    [
        [link(Filter(), HasHeaderKey("none"))],
        [link(DropHeaders(frozenset({"none"})))],
        [link(InsertHeader("a", b""), HasHeaderKey("none"))],
        [link(here("untouched"))],
        [link(here("copies"))],
        [link(Filter(), RecordIsTombstone())],
    ],
)
def test_batches_that_nothing_touches_go_as_they_are(chain: list[Link], codec: int) -> None:
    bytes_of = random.Random(1).randbytes
    records = [Rec(at, NOW_MS, b"k", bytes_of(400), (("eu", b"1"),)) for at in range(20)]
    batches = in_batches(records, [10, 10], codec=codec)
    response = joined([bytes(batch.data) for batch in batches])
    steps = list(copy_batches(response, 0, MERGING, None, None, change(*chain)))
    whole = [bytes(batch.data) for step in steps for batch in step.batches]
    assert whole == [bytes(batch.data) for batch in batches]


def untouched(records: pa.RecordBatch) -> pa.RecordBatch:
    return records


def copies(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.filter(pa.array([True] * len(records)))


def test_a_chain_concerns_topics_by_their_names_on_the_target() -> None:
    eu, others = TopicNameMatches(r"us\.eu.*", "k"), link(InsertHeader("a", b""))
    chain = Chain((link(Filter(), eu, negates=True), others))
    assert chain.of_topic("us.eu-orders") == Chain((others,))
    assert chain.of_topic("us.orders") == chain
    assert Chain((link(Filter(), eu),)).of_topic("us.orders") is None


def test_offsets_of_a_gapless_copy_are_not_merged_over_what_is_left_out() -> None:
    records = [Rec(at, headers=(("eu", b""),) if at % 4 == 0 else ()) for at in range(12)]
    response = joined([encode(records)])
    rules = CopyRules(merged_bytes_max=1 << 20, is_gapless=True)
    (step,) = copy_batches(response, 0, rules, None, None, change(link(Filter(), EU)))
    assert [batch.offsets for batch in step.batches] == [range(1, 4), range(5, 8), range(9, 12)]
    assert step.position == 12


def twice(records: pa.RecordBatch) -> pa.RecordBatch:
    return pa.concat_batches([records, records])


def turned(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.take(pa.array(range(len(records) - 1, -1, -1)))


def moved(records: pa.RecordBatch) -> pa.RecordBatch:
    at = records.schema.get_field_index("offset")
    return records.set_column(at, records.schema.field(at), pc.add(records.column("offset"), 100))


def elsewhere(records: pa.RecordBatch) -> pa.RecordBatch:
    at = records.schema.get_field_index("topic")
    return records.set_column(at, records.schema.field(at), pa.array(["other"] * len(records)))


def narrow(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.select(["key", "value"])


def text(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.set_column(1, "value", records.column("value").cast(pa.string()))


def wide(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.append_column("more", records.column("key"))


def nothing(_: pa.RecordBatch) -> Any:
    return None


def raising(records: pa.RecordBatch) -> pa.RecordBatch:
    """Can't take a value of bad."""
    if b"bad" in records.column("value").to_pylist():
        raise ValueError("a bad\nvalue")
    return seen(records)


def leaving(_: pa.RecordBatch) -> pa.RecordBatch:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("twice", "records with other offsets, or more than once"),
        ("turned", "records in another order, or more than once"),
        ("moved", "records with other offsets"),
        ("elsewhere", "records with another topic"),
        ("narrow", "another schema: the column topic is missing"),
        ("text", "another schema: the column value is string, not binary"),
        ("wide", "another schema: there is no column more"),
        ("nothing", "an object of type NoneType, not a pyarrow.RecordBatch"),
        ("leaving", "raised SystemExit: 3"),
        ("missing", "there is no missing in the module"),
    ],
)
def test_a_function_that_returns_something_else_fails_before_its_first_record(name: str, reason: str) -> None:
    response = joined([encode([Rec(at) for at in range(3)], base_offset=40)])
    steps = copy_batches(response, 40, MERGING, None, None, change(link(here(name))))
    step = next(steps)
    with pytest.raises(ChangeFailedError) as caught:
        next(steps)
    assert reason in str(caught.value)
    # One record alone is in no other order.
    assert caught.value.offset == (41 if name == "turned" else 40)
    assert step.position == caught.value.offset


def test_records_before_the_one_with_which_a_function_fails_are_copied() -> None:
    values = [b"bad" if at in (25, 30) else b"%d" % at for at in range(50)]
    response = joined([encode([Rec(at, value=value) for at, value in enumerate(values)], base_offset=100)])
    changing = change(link(here("raising")), link(InsertHeader("a", b"")))
    done: list[int] = []
    position, failed = 100, []
    for _ in range(3):
        try:
            for step in copy_batches(response, position, MERGING, None, None, changing):
                done += [offset for batch in step.batches for offset in batch.offsets]
                position = step.position
        except ChangeFailedError as error:
            failed.append((position, error.offset, str(error)))
            position = error.offset + 1  # as a task resumes that leaves the record out
    raised = f"{__name__}:raising raised ValueError: a bad value"
    assert failed == [(125, 125, raised), (130, 130, raised)]
    assert position == 150
    assert len(done) + changing.filtered + len(failed) == 50
    assert done == [100 + at for at, value in enumerate(values) if not value.endswith((b"7", b"bad"))]


def test_a_comparison_leaves_out_what_is_a_dead_letter() -> None:
    (batch,) = in_batches([Rec(at, value=b"bad" if at == 3 else b"5") for at in range(6)], [6])
    tolerating = change(link(here("raising")), tolerates=True)
    arriving = carried(batch, tolerating, BYTES_MAX)
    assert [record.offset for each in arriving for record in decode(each.data)] == [0, 1, 2, 4, 5]
    with pytest.raises(ChangeFailedError):
        carried(batch, change(link(here("raising"))), BYTES_MAX)


def test_a_corrupt_batch_is_named_and_those_before_it_are_copied() -> None:
    good = encode([Rec(0), Rec(1)])
    bad = encode([Rec(0)], base_offset=2, record_count=9, last_offset_delta=8)
    steps = copy_batches(joined([good, bad]), 0, MERGING, None, None, change(link(InsertHeader("a", b""))))
    step = next(steps)
    assert [batch.offsets for batch in step.batches] == [range(2)]
    with pytest.raises(CorruptBatchError, match="offset 2: "):
        next(steps)


def test_a_batch_is_concerned_where_a_name_occurs_in_it() -> None:
    looking = change(link(Filter(), EU))
    without = [fetched(encode([Rec(0, value=b"v")], codec=codec)) for codec in range(5)]
    having = [fetched(encode([Rec(0, headers=(("eu", b""),))], codec=codec)) for codec in range(5)]
    assert not any(looking.concerns(batch, BYTES_MAX) for batch in without)
    assert all(looking.concerns(batch, BYTES_MAX) for batch in having)
