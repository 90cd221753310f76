"""The report file keeps finished ranges; the others are compared or planned again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.batches.agreement.compared_log import Span
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.verify.range_comparison import RangePlan, Sides
from sparkmirror.verify.range_planning import Offsets
from sparkmirror.verify.report_file import PartitionReport, RangeReport, Report
from sparkmirror.verify.rules_and_result import Comparison, Difference, Rules

FLOW = "A->B"
CONSUMER = ConsumerSettings(ConnectionSettings((("nowhere", 9092),)))
SIDES = {FLOW: Sides(Flow(Alias("A"), Alias("B")), CONSUMER, CONSUMER)}
SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
EQUAL = Comparison(equal=10)
DIFFERENT = Comparison(
    equal=9, counts={"missing": 1}, differences=(Difference("missing", 3, None, "key 'k', value 'v'"),)
)


def plan(first: int, rules: Rules = Rules(producer_id=7)) -> RangePlan:  # noqa: B008 - it's a value
    span, copied = Span(first, first + 10), Span(first + 5, first + 15)
    return RangePlan(SIDES[FLOW], SOURCE, TARGET, span, copied, rules)


def ranges(*comparisons: Comparison | None) -> list[RangeReport]:
    return [RangeReport(plan(10 * at), comparison) for at, comparison in enumerate(comparisons)]


def saved(path: Path, partition: list[RangeReport]) -> None:
    report = Report(path, SIDES)
    report.select(FLOW, SOURCE, TARGET).ranges.extend(partition)
    report.save()


def test_saved_results_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    partition = ranges(EQUAL, None, DIFFERENT)
    saved(path, partition)
    report = Report(path, SIDES)
    again = report.select(FLOW, SOURCE, TARGET)
    assert again.ranges == partition
    assert again.end == Offsets(30, 35)
    assert report.unfinished() == [partition[1]]
    assert list(tmp_path.iterdir()) == [path]


def test_it_holds_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    saved(path, ranges(EQUAL))
    assert "nowhere" not in path.read_text()


def test_an_error_is_not_kept(tmp_path: Path) -> None:
    partition = ranges(EQUAL, None)
    partition[1].error = "unreachable"
    saved(tmp_path / "report.json", partition)
    assert Report(tmp_path / "report.json", SIDES).select(FLOW, SOURCE, TARGET).errors == []


def test_other_flows_and_partitions_stay_in_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    saved(path, ranges(EQUAL, None))
    content = json.loads(path.read_text())
    content["flows"]["B->A"] = ["kept"]
    path.write_text(json.dumps(content))
    report = Report(path, SIDES)
    other = TopicPartition("u", 0)
    report.select(FLOW, other, other)
    report.save()
    assert json.loads(path.read_text()) == content
    assert report.unfinished() == [], "only of partitions that were asked for"


def test_a_plan_without_results_is_made_again() -> None:
    partition = PartitionReport(SOURCE, TARGET, ranges(None, None))
    partition.drop_uncertain()
    assert partition.end is None


def test_a_last_range_with_an_unknown_end_is_compared_again() -> None:
    open_ended = RangeReport(plan(10, Rules(target_end_is_known=False)), EQUAL)
    partition = PartitionReport(SOURCE, TARGET, [*ranges(EQUAL), open_ended])
    partition.drop_uncertain()
    assert partition.end == Offsets(10, 15)


def test_a_target_of_another_name_is_another_mirror(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    saved(path, ranges(EQUAL))
    assert Report(path, SIDES).select(FLOW, SOURCE, TopicPartition("elsewhere.t", 0)).ranges == []


def test_neighbours_that_differ_become_one_range() -> None:
    first, second, third, fourth, fifth = ranges(EQUAL, DIFFERENT, EQUAL, DIFFERENT, EQUAL)
    third.plan = replace(third.plan, lost=0)
    partition = PartitionReport(SOURCE, TARGET, [first, second, third, fourth, fifth])
    assert partition.merge_differences()
    spans = [(each.plan.source_span, each.plan.target_span) for each in partition.ranges]
    assert spans == [(Span(0, 10), Span(5, 15)), (Span(10, 40), Span(15, 45)), (Span(40, 50), Span(45, 55))]
    assert [each.comparison for each in partition.ranges] == [EQUAL, None, EQUAL]


@pytest.mark.parametrize("comparisons", [(EQUAL, EQUAL), (EQUAL, DIFFERENT, EQUAL), (DIFFERENT,)])
def test_a_difference_between_proven_boundaries_is_kept(comparisons: tuple[Comparison, ...]) -> None:
    partition = PartitionReport(SOURCE, TARGET, ranges(*comparisons))
    assert not partition.merge_differences()
    assert partition.comparison == sum(comparisons, Comparison())


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2, "flows": {}}', '{"format": 1, "flows": {"A->B": [1]}}']
)
def test_a_file_of_another_kind_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(SparkmirrorError, match=r"is not a report of sparkmirror verify .* name another file"):
        Report(path, SIDES)
    assert path.read_text() == text
