import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sparkmirror.cli.commands import topics_explain
from sparkmirror.cli.explanations import show, to_json
from sparkmirror.cli.main import main
from sparkmirror.domain.explanation import Verdict
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.setup.topic_explanation import (
    ConfigDifference,
    MirroredPartition,
    TopicFacts,
)

FACTS = TopicFacts(
    Flow(Alias("us"), Alias("eu")),
    "orders",
    "us.orders",
    [
        Verdict("filter", passes=True, why="the topic filter selects it"),
        Verdict("cycle", passes=False, why="by its name it came from eu, the target"),
    ],
    1,
    2,
    [ConfigDifference("retention.ms", "5", None, "the next sync sets it")],
    ["ALLOW READ on TOPIC us.orders to User:ann"],
    [MirroredPartition(TopicPartition("orders", 0), TopicPartition("us.orders", 0), 0, 100, 90, 90)],
    obstacles=["no right: kafka-acls.sh"],
)


def test_the_table_shows_every_rule_and_partition() -> None:
    text = io.StringIO()
    show(Console(file=text, width=120), topics_explain.explained(FACTS), topics_explain.COLUMNS)
    lines = [" ".join(line.split()) for line in text.getvalue().splitlines() if line.strip()]
    assert lines[0] == "orders us->eu as us.orders"
    assert "✓ filter: the topic filter selects it" in lines
    assert "✗ cycle: by its name it came from eu, the target" in lines
    assert "✗ no right: kafka-acls.sh" in lines
    assert "orders-0 0 100 90 10 us.orders-0 90" in lines
    assert "✓ orders-0: 10 records behind" in lines
    assert "retention.ms 5 - the next sync sets it" in lines
    assert lines[-1].endswith("ALLOW READ on TOPIC us.orders to User:ann")


def test_json_holds_everything() -> None:
    found = json.loads(json.dumps(to_json(topics_explain.explained(FACTS))))
    assert (found["flow"], found["topic"], found["target_topic"], found["mirrored"]) == (
        "us->eu",
        "orders",
        "us.orders",
        False,
    )
    assert [rule["passes"] for rule in found["rules"]] == [True, False]
    assert found["partitions"][0]["lag"] == 10


def test_wrong_usage_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = x:1\na->b.enabled = true\n"
    )
    assert main(["topics", "explain", str(file), "orders", "--flow", "a->c"]) == 2
    assert "has no flow a->c that mirrors topics (it has: a->b" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["topics"])
    assert ended.value.code == 2
    assert "--bootstrap-server is required" in capsys.readouterr().err


def test_long_names_are_never_cut() -> None:
    topic = "com.example.europe." + "payments." * 10
    partition = MirroredPartition(
        TopicPartition(topic, 12), TopicPartition(f"us.{topic}", 12), 0, 100, 90, 90
    )
    text = io.StringIO()
    facts = replace(FACTS, topic=topic, partitions=[partition])
    show(Console(file=text, width=80), topics_explain.explained(facts), topics_explain.COLUMNS)
    (row,) = (line for line in text.getvalue().splitlines() if line.startswith(f"  {topic}-12 "))
    assert f"us.{topic}-12" in row
