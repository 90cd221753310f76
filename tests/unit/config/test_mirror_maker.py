"""Parsed mm2.properties equal those of Java's MirrorMakerConfig 4.3.1 (tests/golden/config)."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror.config.connector_options import HEARTBEAT_CONNECTOR, SOURCE_CONNECTOR
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties, parse_properties, read_properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
JAVA: dict[str, dict[str, dict[str, dict[str, str]]]] = json.loads((GOLDEN / "mirror_maker.json").read_text())
A, B = Alias("A"), Alias("B")
AB = Flow(A, B)
TWO = {"clusters": "A, B", "A.bootstrap.servers": "a:9092", "B.bootstrap.servers": "b:9092"}


def config(environment: Mapping[str, str] | None = None, /, **more: str) -> MirrorMakerConfig:
    return MirrorMakerConfig(Properties(TWO | more), environment or {})


def golden(file: str) -> MirrorMakerConfig:
    return MirrorMakerConfig(read_properties(GOLDEN / file), {})


def names(config: MirrorMakerConfig, only_targets: tuple[str, ...] | None = None) -> list[str]:
    return [str(each.flow) for each in config.flows(only_targets)]


@pytest.mark.parametrize("file", ["two_clusters", "layers", "heartbeats_off"])
def test_the_flows_are_java_s(file: str) -> None:
    assert sorted(names(golden(f"{file}.properties"))) == sorted(JAVA[f"{file}.properties"])


@pytest.mark.parametrize(("file", "flow"), [(file, flow) for file, flows in JAVA.items() for flow in flows])
def test_every_property_is_java_s(file: str, flow: str) -> None:
    source, _, target = flow.partition("->")
    pair, java, ours = Flow(Alias(source), Alias(target)), JAVA[file][flow], golden(file)
    assert ours.worker_properties(pair) == java["worker"]
    assert ours.connector_properties(pair, SOURCE_CONNECTOR) == java["source"]
    assert ours.connector_properties(pair, HEARTBEAT_CONNECTOR) == java["heartbeat"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["A->B", "B->A"]),
        ({"emit.heartbeats.enabled": "false"}, []),
        ({"emit.heartbeats.enabled": "yes"}, []),
        ({"emit.heartbeats.enabled": "false", "A->B.enabled": "true"}, ["A->B"]),
        ({"emit.heartbeats.enabled": "false", "A->B.enabled": "TRUE"}, ["A->B"]),
        ({"emit.heartbeats.enabled": "false", "A->B.enabled": "yes"}, []),
        ({"emit.heartbeats.enabled": "false", "A->B.enabled": "true "}, []),
        ({"emit.heartbeats.enabled": "false", "B->A.emit.heartbeats.enabled": "true"}, ["B->A"]),
        ({"A->B.emit.heartbeats.enabled": "false"}, ["B->A"]),
    ],
)
def test_which_flows_run(given: dict[str, str], expected: list[str]) -> None:
    if expected:
        assert names(config(**given)) == expected
        return
    with pytest.raises(ConfigError, match=r"No source->target replication flows\."):
        config(**given).flows()


def test_only_flows_into_the_given_targets_run() -> None:
    assert names(config(), ("B",)) == ["A->B"]
    assert names(config(), ("B", "A")) == ["A->B", "B->A"]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid value X for configuration --clusters: is not one of"):
        config().flows(["X"])


def test_no_clusters_is_refused() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "clusters"'):
        MirrorMakerConfig(Properties({"A.bootstrap.servers": "a:1"}), {})


def test_one_cluster_has_no_flow() -> None:
    with pytest.raises(ConfigError, match="No source->target"):
        MirrorMakerConfig(Properties({"clusters": "A", "A.bootstrap.servers": "a:1"}), {}).flows()


@pytest.mark.parametrize("alias", ["A", "B"])
@pytest.mark.parametrize("value", [None, " "])
def test_bootstrap_servers_are_needed(alias: str, value: str | None) -> None:
    given = {key: text for key, text in TWO.items() if key != f"{alias}.bootstrap.servers"}
    if value is not None:
        given[f"{alias}.bootstrap.servers"] = value
    with pytest.raises(ConfigError, match=rf"^{alias}\.bootstrap\.servers: is missing"):
        MirrorMakerConfig(Properties(given), {}).flows()


def test_bootstrap_servers_of_the_top_level_are_the_default() -> None:
    given = Properties({"clusters": "A,B", "bootstrap.servers": "all:1", "A.bootstrap.servers": "a:1"})
    of = MirrorMakerConfig(given, {}).cluster_properties
    assert of(A)["bootstrap.servers"] == "a:1"
    assert of(B)["bootstrap.servers"] == "all:1"
    assert of(B)["consumer.bootstrap.servers"] == "all:1"


def test_own_options_are_validated() -> None:
    with pytest.raises(ConfigError, match=r"dedicated\.mode\.enable\.internal\.rest: Expected"):
        config(**{"dedicated.mode.enable.internal.rest": "maybe"})


def test_a_flow_brings_everything_resolved() -> None:
    given = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "A.sasl.jaas.config": "${env:JAAS}",
        "B.producer.acks": "${env:ACKS}",
        "A->B.enabled": "${env:ON}",
        "A->B.topics": "${env:TOPICS}",
        "emit.heartbeats.enabled": "false",
    }
    environment = {"JAAS": "hush", "ACKS": "1", "ON": "true", "TOPICS": "t.*"}
    (flow,) = config(environment, **given).flows()
    assert flow.flow == AB
    assert flow.worker["producer.acks"] == "1"
    assert flow.source["source.cluster.sasl.jaas.config"] == "hush"
    assert (flow.source["topics"], flow.heartbeat["topics"]) == ("t.*", "t.*")
    assert flow.source["connector.class"] == SOURCE_CONNECTOR
    assert "hush" not in repr(flow)
    assert str(flow.source.error("topics", "bad")) == (
        "Invalid value ${env:TOPICS} for configuration A->B.topics: bad"
    )


def test_connectors_are_stored_with_their_placeholders() -> None:
    given = {"config.providers": "", "A->B.topics": "${env:TOPICS}"}
    assert config(**given).connector_properties(AB, SOURCE_CONNECTOR)["topics"] == "${env:TOPICS}"


def test_keys_below_a_flow_never_reach_the_worker() -> None:
    worker = config(**{"A->B.offset.flush.interval.ms": "1", "A->B.group.id": "g"}).worker_properties(AB)
    assert "offset.flush.interval.ms" not in worker
    assert worker["group.id"] == "A-mm2"


def test_spark_settings_pass_through() -> None:
    given = config(**{"spark.master": "local[4]", "spark.executor.memory": "1g"})
    assert given.spark_properties() == {"spark.master": "local[4]", "spark.executor.memory": "1g"}
    assert given.unknown_keys() == ()


def test_a_cluster_called_spark_keeps_its_keys() -> None:
    given = {"clusters": "spark, B", "spark.bootstrap.servers": "a:1", "bootstrap.servers": "b:1"}
    ours = MirrorMakerConfig(Properties(given), {})
    assert ours.spark_properties() == {}
    assert ours.cluster_properties(Alias("spark"))["bootstrap.servers"] == "a:1"


IBM_TUTORIAL = r"""
clusters=source, target
source.bootstrap.servers=broker-3.example.com:9093,broker-1.example.com:9093
source.security.protocol=SASL_SSL
source.ssl.protocol=TLSv1.2
source.sasl.mechanism=PLAIN
source.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    username="token" password="985";
target.bootstrap.servers=kafka1:9092,kafka2:9093,kafka3:9094
# enable and configure individual replication flows
source->target.enabled=true
source->target.topics=orders
"""


def test_a_file_from_the_field() -> None:
    ours = MirrorMakerConfig(parse_properties(IBM_TUTORIAL, "mm2.properties"), {})
    assert ours.unknown_keys() == ()
    forth, back = ours.flows()
    assert forth.source["topics"] == "orders"
    assert forth.source["source.cluster.security.protocol"] == "SASL_SSL"
    assert forth.source["source.consumer.sasl.mechanism"] == "PLAIN"
    assert forth.worker["bootstrap.servers"].startswith("kafka1:9092")
    assert "security.protocol" not in forth.worker
    assert back.source["enabled"] == "false"
    assert '"985"' not in repr(ours.flows())
