"""Transforms in a copy task: what they leave out is a gap, and each kept record arrives once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sparkmirror.cli.main import main
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.progress import PartitionState
from sparkmirror.transforms.chain import Chain, Filter, Function, Link, RecordIsTombstone
from sparkmirror.verify.range_comparison import Sides, verify_range
from sparkmirror.verify.range_planning import MirroredPartition, plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.contract.copying import DEAD_LETTERS, Bench, ProgressReports, running, stored
from tests.support.broker_data import Keyed, append, latest, numbered

TOMBSTONES: Final = Link(Filter(), RecordIsTombstone())


def marked(records: pa.RecordBatch) -> pa.RecordBatch:
    """Change values; the function can't take one of bad."""
    values = records.column("value")
    if b"bad" in values.to_pylist():
        raise ValueError("a bad value")
    return records.set_column(
        1, records.schema.field("value"), pc.binary_join_element_wise(values, b"!", b"")
    )


MARKED: Final = Link(Function(f"{__name__}:marked"))


def transforming(bench: Bench, topic: str, *links: Link, tolerates: bool = False) -> TaskPlan:
    plan = bench.plan(TopicPartition(topic, 0))
    (partition,) = plan.partitions
    changed = replace(partition, transforms=Chain(links, tolerates=tolerates))
    return replace(plan, partitions=(changed,))


def compared(bench: Bench, plan: TaskPlan) -> Comparison:
    """Compare as `sparkmirror verify` does."""
    (partition,) = plan.partitions
    assert partition.transforms is not None
    target = ConsumerSettings(plan.producer.connection)
    sides = Sides(plan.flow, plan.consumer, target, transforms={partition.source: partition.transforms})
    position = stored(bench, partition.source.topic)
    mirrored = MirroredPartition(partition, position)
    return sum(map(verify_range, plan_ranges(sides, [mirrored], range_offsets=60)), Comparison())


def with_mark(records: list[Keyed]) -> list[Keyed]:
    return [(key, (value or b"") + b"!") for key, value in records]


def with_tombstones(records: list[Keyed]) -> list[Keyed]:
    """Every third is one."""
    return [(key, None if at % 3 == 1 else value) for at, (key, value) in enumerate(records)]


def test_what_is_filtered_is_a_gap_and_positions_pass_it(bench: Bench, watch: ProgressReports) -> None:
    topic = "contract.filtered"
    bench.create(topic)
    first, last = with_tombstones(numbered(200)), [(b"k", None)] * 5
    append(bench.source, topic, [*first, *last])
    kept = [record for record in first if record[1] is not None]
    plan = transforming(bench, topic, TOMBSTONES, MARKED)
    with running(plan):
        bench.await_copied(topic, with_mark(kept))
        report = watch.await_progress(topic, lambda report: report.position == 204)
    assert (report.lag, report.error, report.records) == (0, None, len(kept))
    assert report.filtered == 205 - len(kept)
    with running(plan):  # nothing is copied again
        append(bench.source, topic, numbered(20, 200))
        bench.await_copied(topic, with_mark([*kept, *numbered(20, 200)]))
        watch.await_progress(topic, lambda report: report.position == 224)
    assert compared(bench, plan) == Comparison(equal=len(kept) + 20)
    other = transforming(bench, topic, TOMBSTONES)
    assert compared(bench, other).equal == 0


def test_a_function_that_raises_stops_its_partition_with_place_and_reason(
    bench: Bench, watch: ProgressReports
) -> None:
    topic = "contract.raising"
    bench.create(topic)
    append(bench.source, topic, [*numbered(20), (b"k", b"bad"), *numbered(30, 20)])
    with running(transforming(bench, topic, MARKED)):
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.FAILED)
        bench.await_copied(topic, with_mark(numbered(20)))
    place = f"{topic}-0: offset 20: {__name__}:marked raised ValueError: a bad value"
    assert str(report.error).startswith(place)
    assert (report.position, report.records) == (19, 20)


def test_a_tolerated_record_is_left_out_with_a_dead_letter(bench: Bench, watch: ProgressReports) -> None:
    topic = "contract.tolerated"
    bench.create(topic)
    append(bench.source, topic, [*numbered(20), (b"k", b"bad"), (b"k", b"bad"), *numbered(30, 20)])
    plan = transforming(bench, topic, MARKED, tolerates=True)
    with running(plan):
        bench.await_copied(topic, with_mark(numbered(50)))
        watch.await_progress(topic, lambda report: report.position == 51)
    for first in (20, 21):
        key = json.dumps([topic, 0, first], separators=(",", ":")).encode()
        letter = json.loads(latest(bench.target, DEAD_LETTERS)[key] or b"null")
        assert letter["last"] == first
        assert letter["error"].endswith("marked raised ValueError: a bad value")
    assert compared(bench, plan) == Comparison(equal=50)


def test_a_trial_shows_records_before_and_after_and_writes_nothing(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = "contract.tried"
    bench.create(topic)
    append(bench.source, topic, [*numbered(2), (b"k", None), (b"k", b"bad"), (b"\x1b", b"last")])
    function = {
        "type": "sparkmirror.transforms.Function",
        "function": f"{__name__}:marked",
        "predicate": "gone",
        "negate": "true",
    }
    keys = {f"near->far.transforms.mark.{name}": text for name, text in function.items()}
    file = tmp_path / "mm2.properties"
    lines = {
        "clusters": "near, far",
        "near.bootstrap.servers": bench.source.bootstrap_servers,
        "far.bootstrap.servers": bench.target.bootstrap_servers,
        "near->far.enabled": "true",
        "near->far.predicates": "gone",
        "near->far.predicates.gone.type": "RecordIsTombstone",
        "near->far.transforms": "gone, mark",
        "near->far.transforms.gone.type": "Filter",
        "near->far.transforms.gone.predicate": "gone",
        **keys,
    }
    file.write_text("".join(f"{key} = {text}\n" for key, text in lines.items()))
    assert main(["transform", "try", str(file), "--topic", topic, "--limit", "4"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"near->far  {topic} as near.{topic}"
    assert [line.strip() for line in said[2::2]] == [
        "→ value value-1!",
        "left out",
        f"✗ {__name__}:marked raised ValueError: a bad value",
        "→ value last!",
    ]
    assert said[1].startswith(f"  {topic}-0 offset 1: key key-1, value value-1, timestamp ")
    assert "key \\x1b, value last" in said[7]
    assert bench.copied(topic) == []
    file.write_text(file.read_text().replace("gone, mark", ""))
    assert main(["transform", "try", str(file), "--topic", topic, "--limit", "1"]) == 0
    assert "no transform may change its records" in capsys.readouterr().out
    assert main(["transform", "try", str(file), "--topic", "contract.no-such"]) == 0
    assert "it has no records" in capsys.readouterr().out
