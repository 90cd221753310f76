"""Results of a comparison as a table, as JSON and as JUnit XML."""

import io
import json
from xml.etree import ElementTree as ET

from rich.console import Console

from sparkmirror.cli.commands.verify.table import print_table
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.verify.range_planning import Offsets
from sparkmirror.verify.rules_and_result import Comparison, Difference
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict, in_words, to_json, to_junit, verified

MISSING = Difference("missing", 7, None, "key 'k', value '\x00[red]'")


def partition(number: int, comparison: Comparison, **more: object) -> PartitionVerdict:
    source, target = TopicPartition("orders", number), TopicPartition("A.orders", number)
    return PartitionVerdict(source, target, comparison, **more)  # type: ignore[arg-type]


EQUAL = partition(0, Comparison(equal=1200), upto=Offsets(1200, 1200))
DIFFERENT = partition(1, Comparison(equal=99, counts={"missing": 12}, differences=(MISSING,)))
UNREADABLE = partition(2, Comparison(), errors=("orders-2 on A: gone",))
NOT_BEGUN = partition(3, Comparison(), not_begun="it has no stored position")
PROMOTED = partition(5, Comparison(), promoted="promoted, parted at offset 900")
GAVE_UP = partition(4, Comparison(gave_up="nothing in common"))


def printed(*partitions: PartitionVerdict) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_table(console, [FlowVerdict("A->B", partitions)])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_states() -> None:
    states = [each.state for each in (EQUAL, DIFFERENT, UNREADABLE, NOT_BEGUN, GAVE_UP, PROMOTED)]
    assert states == ["equal", "different", "unreadable", "not begun", "different", "promoted"]


def test_promoted_partitions_are_named_and_not_compared() -> None:
    text = printed(EQUAL, PROMOTED)
    assert "✓ 1,200 records are the same" in text
    assert "  1 partition not compared: applications write on the target." in text
    assert "    orders-5: promoted, parted at offset 900" in text
    verdict = FlowVerdict("A->B", [EQUAL, PROMOTED])
    assert verdict.is_equal
    assert in_words(verdict).endswith("; 1 partition promoted, and not compared")
    assert verified(verdict, 1.0).keys() == {EQUAL.source}
    assert json.loads(to_json([verdict]))["flows"][0]["partitions"][1]["promoted"] == PROMOTED.promoted
    (suite,) = ET.fromstring(to_junit([verdict]))
    assert suite.attrib["skipped"] == "1"


def test_equal_is_one_sentence() -> None:
    text = printed(EQUAL)
    assert (
        "✓ 1,200 records are the same on both clusters: count, order, key, value, headers, timestamp." in text
    )
    assert "✗" not in text


def test_columns_without_a_count_may_be_left_out() -> None:
    out = io.StringIO()
    verdict = FlowVerdict("A->B", [EQUAL, partition(1, Comparison(equal=1, foreign=2))])
    print_table(Console(file=out, width=80), [verdict], brief=True)
    assert "  source  target    partitions  equal  foreign" in out.getvalue().splitlines()


def test_a_difference_is_named_as_it_is() -> None:
    text = printed(EQUAL, DIFFERENT, GAVE_UP)
    assert "✗ 2 of 3 partitions differ:" in text
    assert "orders-1 and A.orders-1: missing: source offset 7, target offset -: key 'k', value '" in text
    assert "[red]" in text, "a record is no markup"
    assert "orders-1 and A.orders-1: 11 more differences" in text
    assert "orders-4 and A.orders-4: gave up: nothing in common" in text


def test_partitions_and_records_that_were_not_compared_are_counted() -> None:
    assert "1 partition could not be compared:" in printed(EQUAL, UNREADABLE)
    text = printed(EQUAL, NOT_BEGUN, partition(5, Comparison(foreign=3, not_comparable=4)))
    assert "1 partition with records that the flow has not started with." in text
    assert "3 records on the target were written by other producers." in text
    assert "4 could not be compared: one side has lost them by retention or compaction, or " in text


def test_what_a_late_start_has_left_out_is_a_number() -> None:
    late = [partition(5, Comparison(equal=1, left_out=1200)), partition(6, Comparison(left_out=34))]
    text = printed(*late)
    assert "1,234 records before the flow's first start are left out (auto.offset.reset, start.at)" in text
    assert "; 1,234 records before" in in_words(FlowVerdict("A->B", late))
    assert Comparison.from_json(late[0].comparison.to_json()) == late[0].comparison


def test_json_has_everything() -> None:
    printed = json.loads(to_json([FlowVerdict("A->B", [EQUAL, DIFFERENT])]))
    assert printed["equal"] is False
    equal, different = printed["flows"][0]["partitions"]
    assert (equal["source"], equal["state"], equal["upto_source_offset"]) == ("orders-0", "equal", 1200)
    assert different["counts"] == {"missing": 12}
    assert different["differences"][0]["source_offset"] == 7


def test_json_calls_equal_only_what_was_read() -> None:
    for partitions, is_equal in (([EQUAL, NOT_BEGUN], True), ([EQUAL, UNREADABLE], False)):
        assert json.loads(to_json([FlowVerdict("A->B", partitions)]))["equal"] is is_equal


def test_junit_has_a_case_for_every_partition() -> None:
    partitions = [EQUAL, DIFFERENT, UNREADABLE, NOT_BEGUN]
    (suite,) = ET.fromstring(to_junit([FlowVerdict("A->B", partitions)]))
    assert suite.attrib == {"name": "A->B", "tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    found = {case.attrib["name"]: [child.tag for child in case] for case in suite}
    assert found == {
        "orders-0": ["system-out"],
        "orders-1": ["failure", "system-out"],
        "orders-2": ["error", "system-out"],
        "orders-3": ["skipped", "system-out"],
    }


def test_long_names_are_never_cut() -> None:
    out = io.StringIO()
    topic = "com.example.europe." + "payments." * 10
    source, target = TopicPartition(topic, 0), TopicPartition(f"A.{topic}", 0)
    verdict = FlowVerdict("A->B", [PartitionVerdict(source, target, Comparison(equal=1))])
    print_table(Console(file=out, width=80), [verdict])
    assert f"  {topic}  A.{topic}  " in out.getvalue()


def test_what_was_compared_is_kept_by_partition() -> None:
    empty = partition(5, Comparison())
    verdict = FlowVerdict("A->B", [EQUAL, DIFFERENT, UNREADABLE, NOT_BEGUN, GAVE_UP, empty])
    kept = {of.partition: tuple(it) for of, it in verified(verdict, 5.0).items()}
    assert kept == {0: (5.0, 1200, 0), 1: (5.0, 0, 12), 2: (5.0, None, 0), 4: (5.0, None, 1), 5: (5.0, 0, 0)}
    assert in_words(verdict) == "2 of 6 partitions differ, in 12 places"
    assert in_words(FlowVerdict("A->B", [EQUAL, UNREADABLE])) == "1 of 2 partitions could not be compared"
    some = FlowVerdict("A->B", [EQUAL, partition(1, Comparison(equal=2, not_comparable=7))])
    assert in_words(some) == (
        "1,202 records of 2 partitions are the same on both clusters; 7 could not be compared"
    )
