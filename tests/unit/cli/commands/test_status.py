import json
from pathlib import Path

import pytest

from sparkmirror.cli.commands.mirror_status import status_view, to_json
from sparkmirror.cli.main import main
from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.domain.incidents import not_idempotent, unfenced
from sparkmirror.domain.troubles import NEVER_RUN, Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import ClusterLook, ConnectorLook, HeartbeatLook
from sparkmirror.storage.progress import Driver, PartitionState
from sparkmirror.storage.promotions import Parting, Promotion, Stage
from sparkmirror.view.words import Word
from tests.support.mirror_looks import A_TO_B, answers, group_partition, groups, look, source

FAILED = {"state": PartitionState.FAILED, "error": "no right to WRITE", "lag": 2000}
PARTITIONS = look("orders"), look("page-views", 3, FAILED)
DRIVER = Driver("mirror-1", 42, 1_700_000_000.0)
LOOKS: list[ConnectorLook] = [
    source(*PARTITIONS, driver=DRIVER),
    groups(group_partition("billing"), group_partition("new", checkpoint=None)),
]


THROTTLED_ADVICE = "a client quota lets no more through: raise it for the mirror's user or client id, or wait"


def test_the_help_has_every_word_the_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "-h"])
    lines = capsys.readouterr().out.splitlines()
    said = [word for line in lines for word in Word if line.startswith(f"  {word}  ")]
    assert said == list(Word)


def heartbeat(age_s: float) -> HeartbeatLook:
    name = ConnectorName("MirrorHeartbeatConnector")
    return HeartbeatLook(A_TO_B, name, "heartbeat", age_s=age_s, interval_s=1.0)


def test_the_view_has_topics_failures_process_and_groups() -> None:
    view = status_view(answers(*LOOKS, heartbeat(0.4)))
    assert view.code == 1
    assert view.lines() == [
        "a->b: action required: no right to WRITE",
        "FLOW  TOPIC       PARTITIONS  LAG    STATE",
        "a->b  page-views  1           2,000  action required",
        "a->b  orders      1           0      caught up",
        "",
        (
            "a->b: action required, 2,000 records to copy in 2 partitions, last heartbeat 0 s ago, "
            "process 42 on mirror-1, running since 2023-11-14 22:13:20+00:00"
        ),
        "  page-views-3: no right to WRITE",
        "  1 consumer group with checkpoints: billing",
    ]


@pytest.mark.parametrize("kinds", [["unfenced"], ["not-idempotent"], ["records-lost", "unfenced"]])
def test_partitions_that_are_copied_at_least_once_are_counted_whatever_else_happened(
    kinds: list[str],
) -> None:
    notice = f"something else; {not_idempotent('enable.idempotence is false').text}"
    at_least_once = look(reported={"notice": notice}, incidents=dict.fromkeys(kinds, 1))
    found = answers(source(at_least_once, look("views")))
    assert to_json(found[0])["unfenced_partitions"] == 1
    assert f"  1 partition: {notice}" in status_view(found).notes


def test_topics_that_other_flows_write_too_are_well_and_told() -> None:
    shared = Cause(TroubleWord.SHARED, Subject.TOPIC, "2 flows write it", "exclude one")
    troubles = [Trouble(shared, name) for name in ("orders", "bills")]
    view = status_view(answers(source(look("orders"), troubles=troubles)))
    assert view.code == 0
    assert view.rows == [("a->b", "orders", "1", "0", "caught up")]
    assert "  bills and 1 more shared: 2 flows write it; exclude one" in view.notes


def test_an_unknown_lag_is_no_number() -> None:
    found = answers(source(look(reported={"lag": None, "error": "not begun"})))
    view = status_view(found)
    assert view.rows == [("a->b", "orders", "1", "?", "unknown")]
    assert "  orders-0: not begun" in view.notes
    assert to_json(found[0])["lag_records"] is None


def test_a_heartbeat_of_the_future_is_told() -> None:
    view = status_view(answers(source(look(), is_running=None), heartbeat(-3600.0)))
    assert (
        "last heartbeat 3,600 s in the future by this machine's clock, whether it runs can't be told"
        in "".join(view.notes)
    )


def test_partitions_that_are_copied_at_least_once_are_told_with_the_right() -> None:
    incident = unfenced("needs WRITE on transactional ids that begin with sparkmirror-: kafka-acls.sh")
    kinds = {incident.kind.value: 1}
    views = look("views", reported={"notice": incident.text}, incidents=kinds)
    found = answers(source(look(), views, is_running=True))
    assert f"  1 partition: {incident.text}" in status_view(found).notes
    assert to_json(found[0])["unfenced_partitions"] == 1
    assert "at least once" not in "".join(status_view(answers(source(look()))).notes)


def test_a_mirror_that_does_not_run_is_told_beside_its_partitions() -> None:
    trouble = "the mirror does not run: it has written no heartbeat"
    view = status_view(answers(source(*PARTITIONS, trouble=trouble, is_running=False)))
    assert view.notes[2:] == [f"  MirrorSourceConnector: {trouble}", "  page-views-3: no right to WRITE"]


def test_promoted_topics_are_named_without_a_lag() -> None:
    promoted = {"orders": Promotion(Stage.PROMOTED, 1, b"", {0: Parting(900, 900)})}
    (status,) = answers(source(promoted=promoted))
    view = status_view([status])
    assert view.rows == [("a->b", "orders", "1", "-", "promoted, parted at offset 900")]
    assert view.notes[1].endswith("no partition to copy, 1 topic promoted")
    assert (to_json(status)["lag_records"], to_json(status)["promoted"]) == (
        0,
        {"orders": {"state": "promoted", "partings": {"0": 900}}},
    )
    (status,) = answers(source(promoted={"orders": Promotion(Stage.STOPPING, 1, b"", {})}))
    assert status_view([status]).rows == [("a->b", "orders", "", "-", "being promoted")]


def test_a_standby_direction_has_nothing_to_copy() -> None:
    """The records of its source came from its target."""
    waiting = look("bank", 0, {"state": PartitionState.STANDBY, "error": "b->a has copied it", "lag": 100})
    alone = status_view(answers(source(waiting, is_running=True)))
    assert (alone.code, alone.rows) == (0, [("a->b", "bank", "1", "-", "standby")])
    assert alone.notes[1:] == ["a->b: standby, 1 partition until a failback", "  bank-0: b->a has copied it"]
    (beside,) = answers(source(waiting, look("orders", 0, {"lag": 9}, lag_s=60.0)))
    assert "9 records to copy in 1 partition" in status_view([beside]).notes[1]
    assert to_json(beside)["lag_records"] == 9


def test_json_has_everything() -> None:
    found = json.loads(json.dumps(to_json(*answers(*LOOKS))))
    assert (found["flow"], found["state"], found["running"]) == ("a->b", "action required", True)
    assert found["topics"][0] == {"topic": "page-views", "partitions": 1, "lag_records": 2000}
    assert (found["failed"], found["groups"]) == ({"page-views-3": "no right to WRITE"}, {"billing": 1})


def test_a_file_that_is_not_there_is_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "nowhere.properties"]) == 2
    assert "nowhere.properties is no file, and no name of a cluster" in capsys.readouterr().err


def test_clusters_that_do_not_answer_end_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:1\n"
        "a->b.enabled = true\n"
    )
    assert main(["status", str(file)]) == 2
    assert "a does not answer (a.bootstrap.servers = 127.0.0.1:1)" in capsys.readouterr().err


def test_a_cluster_that_is_away_is_told_first_and_once_for_all_flows() -> None:
    archive = Flow(Alias("a"), Alias("archive"))
    silent = ClusterLook(Alias("archive"), False, 75.0, "Connection refused")
    away = source(look(), report_age_s=75.0, flow=archive, clusters=[silent])
    found = [*answers(source(look()), away), *answers(source(look()), away, flow=archive)]
    view = status_view(found)
    assert view.code == 2
    assert view.lines()[0].startswith("a->archive: unknown: archive does not answer since ")
    assert view.lines()[0].endswith(": Connection refused")
    assert view.rows == [
        ("a->b", "orders", "1", "0", "caught up"),
        ("a->archive", "orders", "1", "?", "unknown"),
    ]
    assert any("lag unknown of 1 partition" in note for note in view.notes)
    assert not any("0 records to copy" in note for note in view.notes if "archive" in note)
    assert [it["cause"] is None for it in map(to_json, found)] == [True, False]


@pytest.mark.parametrize(
    ("looks", "line", "code"),
    [
        (
            [source(partitions=None, waits_for="Spark, which starts")],
            "starting: waits for Spark, which starts",
            2,
        ),
        (
            [source(trouble=NEVER_RUN, is_observed=True, is_running=False)],
            f"action required: {NEVER_RUN}",
            1,
        ),
        (
            [source(look(), trouble="stopped 1 s ago", is_observed=True, is_running=False, is_stopped=True)],
            "stopped: stopped 1 s ago",
            1,
        ),
        (
            [source(look(reported={"lag": 9}, lag_s=60.0, target_throttled=0.9))],
            f"throttled: by b (90 % of the last minute): {THROTTLED_ADVICE}",
            0,
        ),
    ],
)
def test_the_first_line_is_the_cause(looks: list[ConnectorLook], line: str, code: int) -> None:
    view = status_view(answers(*looks))
    assert (view.lines()[0], view.code) == (f"a->b: {line}", code)


def test_a_flow_that_only_emits_heartbeats_is_well() -> None:
    view = status_view(answers(heartbeat(0.4)))
    assert (view.code, view.notes) == (0, ["", "a->b: caught up, only heartbeats, last heartbeat 0 s ago"])
