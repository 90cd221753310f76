"""Former names of keys in every kind of file: named with the current one; lists that select are refused."""

import json
from typing import Final, NamedTuple

import pytest

from sparkmirror.config.conversion.forms import File, Form, read, written
from sparkmirror.config.conversion.model import Remarks
from sparkmirror.config.file_findings import file_findings
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.connect.validation import validate
from sparkmirror.connect.worker_file import connector_warnings, worker_file
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.findings import Severity
from sparkmirror.settings.configured import configured_flow
from sparkmirror.settings.parsing import mirror_checkpoint_settings, mirror_source_settings

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
LISTS: Final = {key: successor for key, successor, reason in FORMER if reason is KIP_629}
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
    """The properties that `convert` writes, and its messages."""

    properties: Properties
    remarks: list[str]


former = pytest.mark.parametrize(("key", "successor", "reason"), FORMER, ids=[key for key, *_ in FORMER])


@former
@pytest.mark.parametrize("head", ["", "A->B."])
def test_in_the_file_that_run_is_given(key: str, successor: str, reason: str, head: str) -> None:
    config = MirrorMakerConfig(parse_properties(f"{CLUSTERS}{head}{key} = x\n", "mm2.properties"), {})
    assert [str(unknown) for unknown in config.unknown_keys()] == [
        f"{head}{key} ({reason.format(head + successor)})"
    ]
    flow, _back = config.flows()
    if key not in LISTS:
        assert configured_flow(flow).source is not None
        return
    with pytest.raises(ConfigError) as caught:
        configured_flow(flow)
    assert str(caught.value).startswith(
        f"{head}{key} (line 5): is called {head}{successor} since Kafka 2.7: Java up to 3.9 leaves out the "
    )
    ways = f"Call it {head}{successor} to leave them out, or delete it to mirror them"
    assert str(caught.value).endswith(ways)


@former
def test_in_a_connector_on_a_worker(key: str, successor: str, reason: str) -> None:
    (warning,) = connector_warnings({**CONNECTOR, key: "x"}, Properties(WORKER))
    if key in LISTS:
        assert warning == f"{key}: nothing reads this key: called {successor} since Kafka 2.7"
    else:
        assert warning == f"{key}: nothing reads this key: {reason.format(successor)}"


@former
def test_in_a_connector_that_is_validated(key: str, successor: str, reason: str) -> None:
    said = validate(None, {**CONNECTOR, key: "x"}, Properties(WORKER), {})
    assert [one["value"]["name"] for one in said["configs"] if one["value"]["errors"]] == []


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("topics.blacklist", "MirrorSourceConnector"),
        ("topics.blacklist", "MirrorCheckpointConnector"),
        ("config.properties.blacklist", "MirrorSourceConnector"),
        ("groups.blacklist", "MirrorCheckpointConnector"),
    ],
)
def test_in_a_connector_that_a_worker_starts(key: str, kind: str) -> None:
    parse = {"MirrorSourceConnector": mirror_source_settings}.get(kind, mirror_checkpoint_settings)
    written = {**CONNECTOR, "name": kind, "connector.class": kind, key: "orders-internal"}
    with pytest.raises(ConfigError, match=f"^{key}: is called {LISTS[key]} since Kafka 2.7"):
        parse(Properties(written))
    parse(Properties({**written, LISTS[key]: "orders-internal"}))
    parse(Properties({**written, LISTS[key]: "another"}))
    for filter_class in ("topic.filter.class", "group.filter.class", "config.property.filter.class"):
        written[filter_class] = "tests.unit.config.test_former_keys:TakesAll"
    parse(Properties(written))


@pytest.mark.parametrize("head", ["", "A->B."])
@pytest.mark.parametrize(
    ("beside", "severity", "said"),
    [
        ("topics.exclude = a, b\n", Severity.NOTE, "has no effect: {}topics.exclude has the same value"),
        (
            "topics.exclude = c\n",
            Severity.WARNS,
            "no version of Java reads this, since {}topics.exclude is set to another value",
        ),
    ],
)
def test_beside_the_current_key(head: str, beside: str, severity: Severity, said: str) -> None:
    text = f"{CLUSTERS}{head}topics.blacklist = b,a\n{head}{beside}"
    config = MirrorMakerConfig(parse_properties(text, "mm2.properties"), {})
    assert configured_flow(config.flows()[0]).source is not None
    (found,) = file_findings(config)
    assert (found.severity, found.line, found.remedy) == (severity, 5, "delete it")
    assert (found.subject, found.text) == (f"{head}topics.blacklist", said.format(head))


def test_a_former_list_that_is_kafkas_default_is_a_remark() -> None:
    text = f"{CLUSTERS}groups.blacklist = console-consumer-.*, connect-.*, __.*\n"
    config = MirrorMakerConfig(parse_properties(text, "mm2.properties"), {})
    assert configured_flow(config.flows()[0]).checkpoint is not None
    (found,) = file_findings(config)
    assert (found.severity, found.text) == (Severity.NOTE, "is groups.exclude's default")


class TakesAll:
    """A filter of one's own, which may read any key."""

    def __init__(self, properties: object) -> None:
        pass

    def should_replicate(self, name: str) -> bool:
        return bool(name)

    def should_replicate_config_property(self, name: str) -> bool:
        return bool(name)

    def should_replicate_source_default(self, name: str) -> bool:
        return bool(name)


@former
def test_in_a_connector_that_is_converted(key: str, successor: str, reason: str) -> None:
    connectors = [
        {"name": kind, "config": {**CONNECTOR, "name": kind, "connector.class": kind, key: "x"}}
        for kind in ("MirrorSourceConnector", "MirrorCheckpointConnector")
    ]
    file = File("connectors.json", json.dumps(connectors))
    if key in LISTS:
        with pytest.raises(ConfigError, match=f"^{key}: is called {successor} since Kafka 2.7"):
            read_and_written(file)
    else:
        said = f"connectors.json: {key}: nothing reads this key: "
        assert read_and_written(file).remarks[0] == said + reason.format(successor)


@former
def test_in_properties_that_are_converted(key: str, successor: str, reason: str) -> None:
    file = File("mm2.properties", f"{CLUSTERS}A->B.{key} = x\n")
    if key in LISTS:
        where = rf"^mm2\.properties: A->B\.{key} \(line 5\): is called A->B\.{successor} since Kafka 2\.7"
        with pytest.raises(ConfigError, match=where):
            read_and_written(file)
        return
    said = read_and_written(file).remarks[0]
    if reason.startswith("did you"):
        assert said == f"A->B.{key} (line 5): nothing reads this key: {reason.format(f'A->B.{successor}')}"
    else:
        assert said.startswith(
            f"A->B.{key} (line 5): nothing reads this key: {reason.format(f'A->B.{successor}')}"
        )


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
