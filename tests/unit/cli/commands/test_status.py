import json
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.cli.commands.mirror_status import status_view, to_json
from sparkmirror.cli.main import main
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.status.flow_lag import FlowLag, PartitionLag
from sparkmirror.status.flow_status import FlowStatus
from sparkmirror.storage.progress import Driver, JobEpoch, PartitionState
from sparkmirror.storage.promotions import Parting, Promotion, Stage
from tests.support.progress_records import IDLE

ORDERS, PAGES = TopicPartition("orders", 0), TopicPartition("page-views", 3)
LAG = FlowLag(
    Flow(Alias("west"), Alias("east")),
    [PartitionLag(ORDERS, 10, 10, 0), PartitionLag(PAGES, 2000, 0, 2000)],
)
STATUS = FlowStatus(
    LAG,
    heartbeat_age_s=0.4,
    report_age_s=0.9,
    job=JobEpoch(ConnectorName("MirrorSourceConnector"), 3, driver=Driver("mirror-1", 42, 1_700_000_000.0)),
    reports={PAGES: replace(IDLE, source=PAGES, state=PartitionState.FAILED, error="no right to WRITE")},
    groups={GroupId("billing"): 2},
)


def test_the_view_has_topics_failures_process_and_groups() -> None:
    view = status_view([STATUS])
    assert not view.is_healthy
    assert view.lines() == [
        "FLOW        TOPIC       PARTITIONS  LAG    STATE",
        "west->east  page-views  1           2,000  action required",
        "west->east  orders      1           0      caught up",
        "",
        (
            "west->east: action required, 2,000 records to copy in 2 partitions, last heartbeat 0 s ago, "
            "process 42 on mirror-1, running since 2023-11-14 22:13:20+00:00"
        ),
        "  page-views-3: no right to WRITE",
        "  1 consumer group with checkpoints: billing",
    ]


def test_an_unknown_lag_is_no_number() -> None:
    lag = FlowLag(LAG.flow, [PartitionLag(ORDERS, 10, None, None, "not begun")])
    view = status_view([FlowStatus(lag, heartbeat_age_s=0.0)])
    assert view.rows == [("west->east", "orders", "1", "?", "unknown")]
    assert "  orders-0: not begun" in view.notes
    assert to_json(FlowStatus(lag, heartbeat_age_s=0.0))["lag_records"] is None


def test_a_heartbeat_of_the_future_is_told() -> None:
    view = status_view([FlowStatus(LAG, heartbeat_age_s=-3600.0)])
    assert (
        "last heartbeat 3,600 s in the future by this machine's clock, whether it runs can't be told"
        in "".join(view.notes)
    )


def test_promoted_topics_are_named_without_a_lag() -> None:
    promoted = {"orders": Promotion(Stage.PROMOTED, 1, b"", {0: Parting(900, 900)})}
    status = FlowStatus(FlowLag(LAG.flow, [], promoted=promoted), heartbeat_age_s=0.0)
    view = status_view([status])
    assert view.rows == [("west->east", "orders", "1", "-", "promoted, parted at offset 900")]
    assert view.notes[1].endswith("no topic to mirror, last heartbeat 0 s ago, 1 topic promoted")
    assert (to_json(status)["lag_records"], to_json(status)["promoted"]) == (
        0,
        {"orders": {"state": "promoted", "partings": {"0": 900}}},
    )


def test_json_has_everything() -> None:
    found = json.loads(json.dumps(to_json(STATUS)))
    assert (found["flow"], found["state"], found["running"]) == ("west->east", "action required", True)
    assert found["topics"][0] == {"topic": "page-views", "partitions": 1, "lag_records": 2000}
    assert (found["failed"], found["groups"]) == ({"page-views-3": "no right to WRITE"}, {"billing": 2})


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
