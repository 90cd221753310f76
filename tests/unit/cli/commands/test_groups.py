import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from sparkmirror.cli.commands import groups
from sparkmirror.cli.explanations import show, to_json
from sparkmirror.cli.main import main
from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.groups.group_explanation import CommittedPartition, GroupFacts, GroupThere
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync

HERE, THERE = TopicPartition("orders", 0), TopicPartition("us.orders", 0)
FACTS = GroupFacts(
    Flow(Alias("us"), Alias("eu")),
    GroupId("billing"),
    GroupThere("classic", committed={HERE: 105}),
    GroupThere("consumer", is_active=True, members=("till-7 at 10.0.0.1",), committed={THERE: 201}),
    [CommittedPartition(HERE, THERE, SyncHistory(OffsetSync(HERE, 119, 219), 20), None, 200, 280)],
)


def test_the_table_shows_a_row_and_a_reason_for_each_partition() -> None:
    text = io.StringIO()
    show(Console(file=text, width=120), groups.explained(FACTS), groups.COLUMNS)
    lines = [line.split() for line in text.getvalue().splitlines() if line.strip()]
    assert lines[0] == ["billing", "us->eu"]
    assert "✗ active on eu, which takes offsets from its members only: till-7 at 10.0.0.1" in text.getvalue()
    assert ["orders-0", "105", "95", "us.orders-0", "205", "-", "201", "79", "-"] in lines
    assert lines[-1] == ["✓", "orders-0:", "translated", "exactly"]


def test_json_holds_everything() -> None:
    found = json.loads(json.dumps(to_json(groups.explained(FACTS))))
    assert (found["flow"], found["group"], found["follows"]) == ("us->eu", "billing", False)
    assert len(found["obstacles"]) == 1
    assert found["partitions"][0]["target_lag"] == 79


def test_wrong_usage_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = x:1\n")
    assert main(["groups", "explain", str(file), "billing"]) == 2
    assert "has no flow that mirrors topics" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["groups", "explain", "billing"])
    assert ended.value.code == 2
