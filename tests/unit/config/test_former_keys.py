"""Former names of keys are accepted in every kind of file, with a warning that has the current name."""

import json
from typing import Final, NamedTuple

import pytest

from sparkmirror.config.conversion.forms import File, Form, read, written
from sparkmirror.config.conversion.model import Remarks
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.connect.validation import validate
from sparkmirror.connect.worker_file import connector_warnings, worker_file
from sparkmirror.settings.configured import configured_flow

KIP_629: Final = "called {} since Kafka 2.7, and no longer read under this name"
FORMER: Final = [
    ("topics.blacklist", "topics.exclude", KIP_629),
    ("groups.blacklist", "groups.exclude", KIP_629),
    ("config.properties.blacklist", "config.properties.exclude", KIP_629),
    ("topics.whitelist", "topics", "MirrorMaker 2 calls it {}"),
    (
        "blacklist",
        "topics.exclude",
        "of MirrorMaker 1; here it is {}, and config.properties.exclude for configs",
    ),
    ("whitelist", "topics", "of MirrorMaker 1; here it is {}"),
    ("num.streams", "tasks.max", "of MirrorMaker 1; here it is {}"),
    ("topicsPattern", "topics", "of a Strimzi resource; here it is {}"),
    ("topicsBlacklistPattern", "topics.exclude", "of a Strimzi resource; here it is {}"),
    ("topics.regex", "topics", "of Connect's sinks; {} takes regular expressions"),
    # These have no successor.
    ("use.incremental.alter.configs", "", "removed in Kafka 4.0, incremental alteration is always required"),
    ("add.source.alias.to.metrics", "", "removed in Kafka 4.0, the alias is always there"),
    ("auto.include.jmx.reporter", "", "removed in Kafka 4.0"),
    # KIP-382 spoke of some that never came, and of others under another name.
    ("sync.topic.acls", "sync.topic.acls.enabled", "did you mean {}?"),
    ("emit.heartbeats", "emit.heartbeats.enabled", "did you mean {}?"),
    ("offset.syncs.topic.replication.factor", "offset-syncs.topic.replication.factor", "did you mean {}?"),
]
RENAMED_BY_CONVERT: Final = {key: successor for key, successor, reason in FORMER if reason is KIP_629}
CLUSTERS: Final = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
CONNECTOR: Final = {
    "name": "msc",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
WORKER: Final = {
    "bootstrap.servers": "b:9092",
    "group.id": "workers",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "offset.storage.topic": "offsets",
    "config.storage.topic": "configs",
    "status.storage.topic": "statuses",
}


class Told(NamedTuple):
    """What `convert` writes as properties, and says."""

    properties: Properties
    remarks: list[str]


former = pytest.mark.parametrize(("key", "successor", "reason"), FORMER, ids=[key for key, *_ in FORMER])


@former
@pytest.mark.parametrize("head", ["", "A->B."])
def test_in_the_file_that_run_is_given(key: str, successor: str, reason: str, head: str) -> None:
    config = MirrorMakerConfig(parse_properties(f"{CLUSTERS}{head}{key} = x\n", "mm2.properties"), {})
    flow, _back = config.flows()
    assert configured_flow(flow).source is not None
    assert [str(unknown) for unknown in config.unknown_keys()] == [
        f"{head}{key} ({reason.format(head + successor)})"
    ]


@former
def test_in_a_connector_on_a_worker(key: str, successor: str, reason: str) -> None:
    (warning,) = connector_warnings({**CONNECTOR, key: "x"}, Properties(WORKER))
    assert warning == f"nothing reads {key} ({reason.format(successor)})"


@former
def test_in_a_connector_that_is_validated(key: str, successor: str, reason: str) -> None:
    said = validate(None, {**CONNECTOR, key: "x"}, Properties(WORKER), {})
    assert [one["value"]["name"] for one in said["configs"] if one["value"]["errors"]] == []


@former
def test_in_a_connector_that_is_converted(key: str, successor: str, reason: str) -> None:
    connectors = [
        {"name": kind, "config": {**CONNECTOR, "name": kind, "connector.class": kind, key: "x"}}
        for kind in ("MirrorSourceConnector", "MirrorCheckpointConnector")
    ]
    converted = read_and_written(File("connectors.json", json.dumps(connectors)))
    if key in RENAMED_BY_CONVERT:
        assert converted.remarks[0] == f"{key} is called {successor} since Kafka 2.7"
        assert converted.properties[f"A->B.{successor}"] == "x"
    else:
        assert converted.remarks[0] == f"connectors.json: nothing reads {key} ({reason.format(successor)})"


@former
def test_in_properties_that_are_converted(key: str, successor: str, reason: str) -> None:
    converted = read_and_written(File("mm2.properties", f"{CLUSTERS}A->B.{key} = x\n"))
    if key in RENAMED_BY_CONVERT:
        assert converted.remarks[0] == f"A->B.{key} is called A->B.{successor} since Kafka 2.7"
    else:
        assert converted.remarks[0] == f"nothing reads A->B.{key} ({reason.format(f'A->B.{successor}')})"


NO_LONGER: Final = "no longer read by Kafka either"


@pytest.mark.parametrize(
    ("key", "warning"),
    [
        ("internal.key.converter", f"internal.key.converter: {NO_LONGER} (removed in Kafka 3.0)"),
        ("auto.include.jmx.reporter", f"auto.include.jmx.reporter: {NO_LONGER} (removed in Kafka 4.0)"),
        ("rest.port", f"rest.port: {NO_LONGER} (removed in Kafka 3.0); listeners replaces it, as in "),
        ("topics.blacklist", "keys that nothing reads: topics.blacklist (called topics.exclude since "),
    ],
)
def test_in_a_workers_own_file(key: str, warning: str) -> None:
    (said,) = (each for each in worker_file(Properties({**WORKER, key: "8084"}), {}).warnings if key in each)
    assert said.startswith(warning)


def read_and_written(file: File) -> Told:
    remarks = Remarks()
    (made,) = written(read([file], remarks), Form.PROPERTIES, remarks)
    return Told(parse_properties(made.text, made.name), [str(remark) for remark in remarks])
