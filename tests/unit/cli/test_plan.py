"""`sparkmirror plan`: the printed plan, and errors of the command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.cli.main import main
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.report import Planned, flow_lines, summary
from tests.support.flow_plans import EU, PLAN, created


def test_a_plan_lists_changes_copies_and_findings() -> None:
    assert list(flow_lines(PLAN)) == [
        "us->eu",
        "",
        "  + create 2 topics on eu",
        "      us.orders: as orders, 1 partition, 1 replica",
        "      us.pages: as pages, 1 partition, 1 replica",
        "  ~ alter the configs of 1 topic on eu",
        "      us.old: retention.ms=5",
        "  - delete 1 ACL on eu",
        "      us.old: ALLOW READ on TOPIC us.old to User:ann",
        "",
        "  copy 2 partitions of 2 topics in 1 task, if Spark has slots for them",
        "      at most 1,200,000 records, about 3 GB, about 1 min at 50 MB/s (--rate)",
        "",
        "  leave out 3 topics",
        "      2: topics.exclude (secret.*) leaves it out: secret, secret.too",
        "      1: it is internal: __x",
        "",
        "  ✗ orders: no right to READ",
        "      kafka-acls.sh --add",
        "  · us.old: fine",
    ]
    assert summary(Planned([PLAN])) == (
        "Plan: 2 to create, 1 to alter, 1 to delete, at most 1,200,000 records to copy. 1 thing blocks it."
    )


def test_a_change_of_several_flows_counts_once() -> None:
    other = replace(PLAN, changes=(created("orders"), created("more")), copies=())
    assert summary(Planned([PLAN, other])) == (
        "Plan: 3 to create, 1 to alter, 1 to delete, at most 1,200,000 records to copy. 1 thing blocks it."
    )


def test_details_list_the_partitions_of_each_task() -> None:
    lines = list(flow_lines(PLAN, detail=True))
    assert "      task 0: 2 partitions" in lines
    assert "          orders-0 -> us.orders: 1,200,000 records from offset 0, about 3 GB" in lines
    assert "          pages-0 -> us.pages: nothing left" in lines


def test_long_lists_are_cut_without_detail() -> None:
    many = FlowPlan(PLAN.flow, None, changes=tuple(created(f"t{number}") for number in range(50)))
    assert len(list(flow_lines(many))) == 1 + 1 + 1 + 20 + 1
    assert list(flow_lines(many))[-1].strip() == "… and 30 lines more: see --detail"
    assert len(list(flow_lines(many, detail=True))) == 1 + 1 + 1 + 50


def test_findings_of_one_text_are_one_line() -> None:
    remedy = "hand over the positions"
    found = [
        Finding("topic of others", Severity.WARNS, f"us.t{at}", "there are records", remedy)
        for at in range(7)
    ]
    plan = replace(PLAN, findings=(*found, Finding("note", Severity.WARNS, "us.x", "there are more", "")))
    lines = list(flow_lines(plan))
    assert lines[-3:] == [
        "  ! us.t0, us.t1, us.t2, us.t3, us.t4 and 2 more: there are records",
        "      hand over the positions",
        "  ! us.x: there are more",
    ]
    assert any("us.t5, us.t6: there are records" in line for line in flow_lines(plan, detail=True))


def test_an_empty_plan_says_that_there_is_nothing_to_do() -> None:
    assert summary(Planned([FlowPlan(PLAN.flow, None)])) == "Plan: nothing to change, nothing to copy."


def test_a_plan_that_could_not_be_made_does_not_say_that_there_is_nothing_to_do() -> None:
    other = Flow(EU, Alias("us"))
    assert summary(Planned([], {PLAN.flow: "down", other: "down"})) == (
        "Plan: could not be made for 2 of 2 flows."
    )
    assert summary(Planned([FlowPlan(PLAN.flow, None)], {other: "down"})) == (
        "Plan: nothing to change, nothing to copy. It could not be made for 1 of 2 flows."
    )
    assert Planned([], {other: "us is down"}).to_json() == [
        {"source": "eu", "target": "us", "error": "us is down"}
    ]


def test_what_concerns_the_file_comes_first_and_is_said_of_each_flow_in_json() -> None:
    wrong = Finding("unknown key", Severity.BLOCKS, "us->eu.topcis", "nothing reads this key", "did you …?")
    planned = Planned([replace(PLAN, findings=())], {}, "mm2.properties", [wrong])
    assert list(planned.lines())[:5] == [
        "mm2.properties",
        "",
        "  ✗ us->eu.topcis: nothing reads this key",
        "      did you …?",
        "",
    ]
    (flow,) = planned.to_json()
    assert (planned.is_blocked, flow["blocked"]) == (True, True)
    assert [finding["subject"] for finding in flow["findings"]] == ["us->eu.topcis"]


def test_flows_that_only_emit_heartbeats_are_named_so() -> None:
    (line,) = flow_lines(FlowPlan(PLAN.flow, None))
    assert line == "us->eu (only heartbeats: it is not enabled)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one FILE is required"),
        (["a", "b"], "one FILE is required"),
        (["nowhere.properties"], "nowhere.properties"),
        (["x.json", "--worker", "nowhere.properties"], "nowhere.properties"),
    ],
)
def test_unusable_input_ends_with_2(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_unreachable_worker_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--url", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("sparkmirror plan: http://127.0.0.1:1")


UNREACHABLE = """\
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
"""


@pytest.mark.parametrize(("options", "code"), [([], 2), (["--detailed-exitcode"], 1)])
def test_clusters_that_do_not_answer_are_named_with_their_setting(
    options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(UNREACHABLE)
    assert main(["plan", str(file), *options]) == code
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == "Plan: could not be made for 2 of 2 flows."
    assert "a->b: a does not answer (a.bootstrap.servers = 127.0.0.1:1): can't connect to" in shown.err


@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_alias_with_the_separator_in_it_is_refused_by_name(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(UNREACHABLE.replace("clusters = a", "clusters = dc.a").replace("\na", "\ndc.a"))
    assert main([command, str(file)]) == 2
    said = capsys.readouterr().err
    assert "source.cluster.alias" in said
    assert "takes for a topic of the cluster 'dc'" in said


@pytest.mark.parametrize(("options", "code"), [([], 2), (["--detailed-exitcode"], 1)])
def test_no_wrong_usage_looks_like_changes(options: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *options, "mm2.properties", "--nonsense"])
    assert ended.value.code == code
    assert main(["plan", *options, "nowhere.properties"]) == code
