"""Configurations from tutorials: every line is accepted, with warnings where due."""

import json
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.config.client_options import ADMIN
from sparkmirror.config.conversion.forms import File, Form, read, written
from sparkmirror.config.conversion.model import Remarks
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties, parse_properties, read_properties, read_text
from sparkmirror.connect.validation import validate
from sparkmirror.connect.worker_file import connector_warnings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.settings.configured import configured_flow

DATA: Final = Path(__file__).parent / "data"
THREE: Final = ("mm2-cpc-source-0.json", "mm2-hbc-source-0.json", "mm2-msc-source-0.json")
WORKER_FILE: Final = "connect-distributed.properties"
POLICIES: Final = (
    "source-0->target-0: replication.policy.class is"
    " org.apache.kafka.connect.mirror.IdentityReplicationPolicy for its MirrorSourceConnector and"
    " org.apache.kafka.connect.mirror.DefaultReplicationPolicy for its MirrorCheckpointConnector:"
    " where each has its own, groups get no offsets: the copy of orders is orders, and they are translated"
    " to source-0.orders. An mm2.properties, and run, take the source connector's for both"
)
WITHOUT_POSITIONS: Final = (
    "source-0->target-0 starts without positions unless target-0.offset.storage.topic is the topic in which"
    " the Connect worker has stored the positions of mm2-msc-source-0, and source-0->target-0.name that name;"
    " give its worker's properties file too, and both are written"
)


def converted(*names: str) -> tuple[Properties, list[str]]:
    """The properties, and all that is said of them."""
    return in_properties([File(name, read_text(DATA / name)) for name in names])


def in_properties(files: list[File]) -> tuple[Properties, list[str]]:
    remarks = Remarks()
    mirrors = read(files, remarks)
    (file,) = written(mirrors, Form.PROPERTIES, remarks)
    return parse_properties(file.text, file.name), [str(remark) for remark in remarks]


def test_three_connectors() -> None:
    properties, said = converted(*THREE)
    (flow,) = (configured_flow(flow) for flow in MirrorMakerConfig(properties, {}).flows())
    assert str(flow.flow) == "source-0->target-0"
    assert flow.source is not None
    assert flow.source.settings.topic_filter.should_replicate("test")
    assert not flow.source.settings.topic_filter.should_replicate("other")
    assert (flow.source.settings.tasks_max, flow.source.settings.replication_factor) == (2, 1)
    assert flow.source.settings.sync_topic_acls_interval_s is None
    assert flow.source.settings.sync_topic_configs_interval_s is None
    assert flow.source.settings.policy.format_remote_topic("source-0", "test") == "test"
    assert flow.checkpoint is not None
    assert flow.heartbeat.settings.emit
    assert flow.source.source_admin.bootstrap_servers == (("kafka-source-0", 9092), ("kafka-source-1", 9092))
    assert flow.source.target_admin.bootstrap_servers == (("kafka-target-0", 9092), ("kafka-target-1", 9092))
    assert MirrorMakerConfig(properties, {}).unknown_keys() == ()
    assert said == [POLICIES, WITHOUT_POSITIONS]


def test_with_their_worker_they_continue_where_they_were() -> None:
    properties, said = converted(*THREE, WORKER_FILE)
    (flow,) = (configured_flow(flow) for flow in MirrorMakerConfig(properties, {}).flows())
    assert flow.source is not None
    assert flow.source.name == "mm2-msc-source-0"
    assert flow.worker.offset_topic.name == "connect-offsets"
    assert MirrorMakerConfig(properties, {}).unknown_keys() == ()
    assert said == [
        *(
            f"{WORKER_FILE}: nothing reads internal.{key} (removed in Kafka 3.0)"
            for key in ("key.converter", "value.converter")
        ),
        *(
            f"{WORKER_FILE}: nothing reads internal.{key} (removed in Kafka 3.0)"
            for key in ("key.converter.schemas.enable", "value.converter.schemas.enable")
        ),
        f"{WORKER_FILE}: nothing reads rest.port (removed in Kafka 3.0, listeners replaces it)",
        POLICIES,
    ]


def test_a_connector_to_be_completed() -> None:
    name = "mm2-msc-custom-policy.json"
    with pytest.raises(ConfigError, match=r"^topics\.blacklist: is called topics\.exclude since Kafka 2\.7"):
        converted(name)
    text = read_text(DATA / name).replace("topics.blacklist", "topics.exclude")
    properties, said = in_properties([File(name, text)])
    assert properties.under("msksource->mskdest.") == {
        "enabled": "true",
        "emit.checkpoints.enabled": "false",
        "name": "mm2-msc",
        "replication.policy.class": "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        "topics": "ExampleTopic",
        "topics.exclude": ".*-internal",
        "tasks.max": "4",
    }
    assert properties["msksource.sasl.mechanism"] == "AWS_MSK_IAM"
    unread = "nothing reads this key"
    of_the_cluster = (
        f"{name}: source.cluster.max.poll.records: {unread}, in Java neither: below source.cluster. only "
        "bootstrap.servers, security.protocol, ssl.* and sasl.* count: "
        "write source.consumer.max.poll.records"
    )
    assert said[:3] == [
        f"{name}: clusters: {unread}",
        of_the_cluster,
        "msksource has no bootstrap.servers yet",
    ]
    with pytest.raises(ConfigError, match=r"^msksource\.bootstrap\.servers: is missing"):
        MirrorMakerConfig(properties, {}).flows()


@pytest.mark.parametrize("name", ["cloud-to-local.properties", "truststore-to-local.properties"])
def test_properties_are_known_to_the_last_key(name: str) -> None:
    properties, said = converted(name)
    assert said == []
    assert MirrorMakerConfig(read_properties(DATA / name), {}).unknown_keys() == ()
    assert {key: properties[key] for key in read_properties(DATA / name)} == read_properties(DATA / name)
    forth, back = MirrorMakerConfig(properties, {}).flows()
    assert (forth.source["topics"], forth.source["enabled"]) == ("orders", "true")
    assert back.source["enabled"] == "false"


def test_a_document_that_wants_a_login_has_it() -> None:
    forth, _ = MirrorMakerConfig(converted("cloud-to-local.properties")[0], {}).flows()
    source = configured_flow(forth).source
    assert source is not None
    sasl = source.source_admin.sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.username) == ("PLAIN", "token")


@pytest.mark.parametrize("name", ["source-client.properties", "target-client.properties"])
def test_properties_of_clients_are_known_to_the_last_key(name: str) -> None:
    properties = read_properties(DATA / name)
    assert ADMIN.unknown(properties) == ()
    assert ADMIN.parse(properties).string("security.protocol") in ("SSL", "SASL_SSL")
    with pytest.raises(ConfigError, match="clusters: is missing: this file holds the settings of one client"):
        converted(name)


def test_a_resource() -> None:
    properties, said = converted("mirror-maker-2-v1beta2.yaml")
    (flow,) = (configured_flow(flow) for flow in MirrorMakerConfig(properties, {}).flows())
    assert flow.source is not None
    assert flow.source.name == "my-cluster-source->my-cluster-target.MirrorSourceConnector"
    assert flow.source.settings.replication_factor == 1
    assert flow.source.settings.offset_syncs_replication_factor == 1
    assert flow.source.settings.sync_topic_acls_interval_s is None
    assert flow.checkpoint is None
    assert not flow.heartbeat.settings.emit
    assert flow.worker.offset_topic.name == "mirrormaker2-cluster-offsets"
    assert said == ["left out: spec.mirrors[0].targetConnector: has no counterpart outside of the operator"]


def test_a_part_of_a_resource_is_not_taken_for_a_whole_one() -> None:
    with pytest.raises(ConfigError) as caught:
        converted("mirror-maker-2-fragment.yaml")
    assert str(caught.value) == (
        "mirror-maker-2-fragment.yaml: holds no resource with kind: KafkaMirrorMaker2 and its spec"
    )


@pytest.mark.parametrize("name", THREE)
def test_a_worker_takes_each_connector_without_a_word(name: str) -> None:
    """The same files, PUT to Connect's REST API."""
    config = json.loads(read_text(DATA / name))
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    worker = read_properties(DATA / WORKER_FILE)
    said = validate(None, texts, worker, {})
    assert [one["value"]["errors"] for one in said["configs"] if one["value"]["errors"]] == []
    assert connector_warnings(texts, worker) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # A document shows a line as it is to be added to a connector's.
        (
            '{\n  "replication.policy.class": "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",\n}\n',
            "part.json: is no JSON: ",
        ),
        (
            '{"replication.policy.class": "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"}',
            "part.json: has no connector.class, so it's no connector",
        ),
    ],
)
def test_a_part_of_a_connector_is_not_taken_for_a_whole_one(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read([File("part.json", text)], Remarks())
    assert str(caught.value).startswith(reason)


def test_a_line_that_a_document_quotes() -> None:
    """It speaks of excluded topics and quotes MM2's first list of excluded configs."""
    quoted = r"blacklist = [follower\.replication\.throttled\.replicas, message\.timestamp\.type]"
    text = f"{read_text(DATA / 'cloud-to-local.properties')}\n{quoted}\n"
    (unknown,) = MirrorMakerConfig(parse_properties(text, "mm2.properties"), {}).unknown_keys()
    assert str(unknown) == (
        "blacklist (of MirrorMaker 1; here it is topics.exclude, and config.properties.exclude for configs)"
    )
