import json

import pytest

from sparkmirror.config.conversion.forms import File, Form, read, written
from sparkmirror.config.conversion.model import Kind, Mirrors, Remarks
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.domain.errors import ConfigError

SOURCE = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
CHECKPOINT = SOURCE | {"connector.class": "MirrorCheckpoint"}
HEARTBEAT = SOURCE | {"connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"}
Content = dict[str, object] | dict[str, str] | list[object] | str


def files(*contents: Content) -> list[File]:
    texts = [content if isinstance(content, str) else json.dumps(content) for content in contents]
    return [File(f"{number}.json", text) for number, text in enumerate(texts)]


def mirrors(*contents: Content) -> tuple[Mirrors, list[str]]:
    remarks = Remarks()
    found = read(files(*contents), remarks)
    return found, [str(remark) for remark in remarks]


def properties(*contents: Content) -> tuple[Properties, list[str]]:
    remarks = Remarks()
    (file,) = written(read(files(*contents), remarks), Form.PROPERTIES, remarks)
    return parse_properties(file.text, file.name), [str(remark) for remark in remarks]


@pytest.mark.parametrize(
    "content",
    [
        SOURCE | {"name": "x"},
        {"name": "x", "config": SOURCE},
        {"name": "x", "config": {**SOURCE, "name": "x"}, "tasks": [], "type": "source"},
        [{"name": "x", "config": SOURCE}],
    ],
)
def test_every_way_to_write_a_connector(content: Content) -> None:
    found, _ = mirrors(content)
    (flow,) = found.flows
    assert (str(flow.flow), flow.name, list(flow.connectors)) == ("A->B", "x", [Kind.SOURCE])


def test_numbers_and_booleans_become_texts() -> None:
    found, _ = mirrors({**SOURCE, "tasks.max": 4, "sync.topic.acls.enabled": False, "my.ratio": 1.5})
    settings = found.flows[0].connectors[Kind.SOURCE]
    assert [settings[key] for key in ("tasks.max", "sync.topic.acls.enabled", "my.ratio")] == [
        "4",
        "false",
        "1.5",
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({**SOURCE, "topics": ["a"]}, "topics: is an object or an array"),
        ({**SOURCE, "topics": None}, "topics: Null value"),
        ({"config": SOURCE}, "has a config and no name"),
        ({"name": "x", "config": {**SOURCE, "name": "y"}}, "has two names, x and y"),
        ({"connector.class": "MirrorSource"}, r"has no source\.cluster\.alias"),
        (["x"], "holds no connector"),
        ('{"a": NaN}', "is no JSON: NaN is no value of JSON"),
        ('{\n"a": 1,\n}', r"is no JSON: .*line [23]"),
        ("[" * 100_000, "is nested too deeply|is no JSON"),
    ],
)
def test_a_config_that_connect_refuses_is_refused(content: Content, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        mirrors(content)


def test_a_missing_connector_does_not_run() -> None:
    written_, _ = properties(SOURCE)
    assert written_["A->B.emit.checkpoints.enabled"] == "false"
    assert written_["emit.heartbeats.enabled"] == "false"
    written_, _ = properties(HEARTBEAT)
    assert written_.under("A->B.") == {"emit.heartbeats.enabled": "true"}


def test_a_checkpoint_connector_alone_would_bring_a_source_connector_with_it() -> None:
    written_, said = properties(CHECKPOINT | {"groups": "g"}, HEARTBEAT)
    assert written_.under("A->B.") == {"emit.heartbeats.enabled": "true"}
    assert said[0].startswith("left out: A->B's MirrorCheckpointConnector: it has no MirrorSourceConnector")


def test_a_connector_that_is_turned_off_is_none() -> None:
    found, said = mirrors(SOURCE, {**CHECKPOINT, "emit.checkpoints.enabled": "False"})
    assert list(found.flows[0].connectors) == [Kind.SOURCE]
    assert said == ["1.json: is turned off, so A->B has no MirrorCheckpointConnector"]


def test_the_source_connector_wins_where_connectors_differ() -> None:
    written_, said = properties(
        {**SOURCE, "tasks.max": "4", "source.cluster.sasl.jaas.config": "hush"},
        {**CHECKPOINT, "tasks.max": "1", "source.cluster.sasl.jaas.config": "hush hush"},
        {**HEARTBEAT, "tasks.max": "2"},
    )
    assert written_["A->B.tasks.max"] == "4"
    assert written_["A.sasl.jaas.config"] == "hush"
    assert "hush" not in " ".join(said)
    assert said == [
        (
            "left out: tasks.max = 1 of A->B's MirrorCheckpointConnector: a flow's connectors have one value,"
            " that of MirrorSourceConnector"
        ),
        (
            "left out: source.cluster.sasl.jaas.config = [hidden] of A->B's MirrorCheckpointConnector: a"
            " flow's connectors have one value, that of MirrorSourceConnector"
        ),
    ]


def test_a_second_connector_of_a_flow_is_named() -> None:
    written_, said = properties({**SOURCE, "topics": "a"}, {**SOURCE, "topics": "b"})
    assert written_["A->B.topics"] == "a"
    assert "left out: 1.json: a second MirrorSourceConnector of A->B, beside 0.json; a flow has one" in said


def test_other_connectors_are_named() -> None:
    _, said = properties(SOURCE, {"connector.class": "org.example.Jdbc"})
    assert "left out: 1.json: org.example.Jdbc is none of MirrorMaker's three connectors" in said


def test_flows_that_reach_a_cluster_in_other_ways_keep_them() -> None:
    back = {
        **SOURCE,
        "source.cluster.alias": "B",
        "target.cluster.alias": "C",
        "source.cluster.bootstrap.servers": "b-outside:9092",
        "target.cluster.bootstrap.servers": "c:9092",
        "source.cluster.sasl.mechanism": "PLAIN",
    }
    written_, said = properties(SOURCE, back)
    assert written_["B.bootstrap.servers"] == "b:9092"
    for key in ("cluster", "consumer", "producer", "admin"):
        assert written_[f"B->C.source.{key}.bootstrap.servers"] == "b-outside:9092"
    assert written_["B->C.source.cluster.sasl.mechanism"] == "PLAIN"
    assert not [line for line in said if line.startswith("left out")]


def test_an_alias_that_properties_can_not_have_is_named() -> None:
    remarks = Remarks()
    found = read(files({**SOURCE, "source.cluster.alias": "a,b"}), remarks)
    assert written(found, Form.PROPERTIES, remarks) == []
    assert "left out: a,b->B: mm2.properties have no cluster of the name 'a,b'" in map(str, remarks)


def test_a_placeholder_without_its_provider_is_named() -> None:
    _, said = properties({**SOURCE, "topics": "${file:/etc/topics:some}"})
    needed = "config.providers must list it, and config.providers.file.class be set"
    assert f"A->B.topics refers to the config provider 'file': {needed}" in said


def test_files_of_flows_from_one_source_have_the_targets_in_their_names() -> None:
    remarks = Remarks()
    to_c = {**SOURCE, "target.cluster.alias": "C"}
    found = written(read(files(SOURCE, to_c), remarks), Form.JSON, remarks)
    assert [file.name for file in found] == ["mm2-msc-A-B.json", "mm2-msc-A-C.json"]


WORKER = """\
bootstrap.servers=b:9092
group.id=connect
offset.storage.topic=connect-offsets
config.storage.topic=connect-configs
status.storage.topic=connect-status
producer.linger.ms=5
consumer.max.poll.records=7
sasl.mechanism=PLAIN
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
"""


def test_a_worker_s_properties_are_its_connectors() -> None:
    remarks = Remarks()
    given = [*files({**SOURCE, "name": "mm2-msc-A", "producer.override.acks": "1"}), File("w", WORKER)]
    (file,) = written(read(given, remarks), Form.PROPERTIES, remarks)
    found = parse_properties(file.text, file.name)
    assert found.under("B.") == {
        "bootstrap.servers": "b:9092",
        "group.id": "connect",
        "offset.storage.topic": "connect-offsets",
        "config.storage.topic": "connect-configs",
        "status.storage.topic": "connect-status",
    }
    assert found["A->B.name"] == "mm2-msc-A"
    assert found.under("A->B.producer.override.") == {"linger.ms": "5", "acks": "1"}
    assert found["config.providers"] == "file"
    assert [str(remark) for remark in remarks] == [
        "left out: w: sasl.mechanism is not that of B, and a flow has one target"
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_workers_without_connectors_are_no_mirror(count: int) -> None:
    with pytest.raises(ConfigError, match=r"is a (second )?Connect worker"):
        read([File(f"{number}", WORKER) for number in range(count)], Remarks())
