import pytest

from sparkmirror.config.conversion.mirror_maker_properties import (
    mirror_maker_properties,
    mirrors_of,
    properties_text,
)
from sparkmirror.config.conversion.model import Kind, MirroredFlow, Mirrors, Remarks
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow

A, B, C = map(Alias, "ABC")
TWO = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
}


ENVIRONMENT = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}


def mirrors(**more: str) -> tuple[Mirrors, list[str]]:
    remarks = Remarks()
    found = mirrors_of(Properties(TWO | more), remarks)
    return found, [str(remark) for remark in remarks]


def flow_into_b(source: Alias, name: str | None = None, **worker: str) -> MirroredFlow:
    settings = Properties(
        {"source.cluster.bootstrap.servers": "x:1", "target.cluster.bootstrap.servers": "b:1"}
    )
    connectors = {Kind.SOURCE: settings, Kind.CHECKPOINT: settings}
    keys = {key.replace("_", "."): value for key, value in worker.items()}
    return MirroredFlow(Flow(source, B), connectors, Properties(keys), name)


def written(*flows: MirroredFlow) -> tuple[Properties, list[str]]:
    remarks = Remarks()
    found = mirror_maker_properties(Mirrors(flows), remarks)
    return found, [str(remark) for remark in remarks]


def test_nothing_is_resolved_and_no_secret_need_be_here() -> None:
    found, said = mirrors(
        **{
            "config.providers": "file",
            "config.providers.file.class": "org.example.FileConfigProvider",
            "A.sasl.jaas.config": "${file:/nowhere:jaas}",
        }
    )
    (flow,) = found.flows
    assert flow.cluster("source")["sasl.jaas.config"] == "${file:/nowhere:jaas}"
    assert flow.worker["config.providers.file.class"] == "org.example.FileConfigProvider"
    assert said == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"A.sasl.jaas.config": "${file:/x:jaas}"},
            "provider 'file' is not declared: config.providers must list it",
        ),
        (
            {
                "config.providers": "secrets",
                "config.providers.secrets.class": "org.example.VaultConfigProvider",
            },
            "value org.example.VaultConfigProvider for configuration config.providers.secrets.class: is not",
        ),
    ],
)
def test_what_no_provider_resolves_is_refused_as_run_does(given: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mirrors(**given)
    assert reason in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        MirrorMakerConfig(Properties(TWO | given), {}).flows()
    assert reason in str(caught.value)


def test_keys_of_the_structure_may_have_no_placeholder() -> None:
    with pytest.raises(
        ConfigError, match=r"A->B\.emit\.checkpoints\.enabled: .* placeholders are not resolved"
    ):
        mirrors(**{**ENVIRONMENT, "A->B.emit.checkpoints.enabled": "${env:X}"})


def test_keys_that_nothing_reads_are_noted_and_dropped() -> None:
    found, said = mirrors(**{"offset.flush.interval.ms": "5", "A.max.poll.records": "7"})
    assert said == [
        "offset.flush.interval.ms: nothing reads this key: did you mean A.offset.flush.interval.ms?",
        "A.max.poll.records: nothing reads this key: did you mean A.consumer.max.poll.records?",
    ]
    assert "max.poll.records" not in " ".join(found.flows[0].connectors[Kind.SOURCE])


def test_keys_of_the_process_are_kept() -> None:
    given = {"spark.master": "local[2]", "dedicated.mode.enable.internal.rest": "true"}
    found, _ = mirrors(**given)
    assert found.process == given
    back, _ = written(*found.flows)
    assert "spark.master" not in back
    back = mirror_maker_properties(found, Remarks())
    assert back.only(given) == given


def test_flows_into_one_cluster_have_one_worker() -> None:
    found, said = written(
        flow_into_b(A, "m", group_id="one", offset_storage_topic="topic"),
        flow_into_b(C, "n", group_id="other", offset_storage_topic="topic"),
    )
    assert found["B.group.id"] == "one"
    assert (found["A->B.name"], found["C->B.name"]) == ("m", "n")
    assert said == [
        "left out: group.id of C->B's worker: flows into one cluster have one",
        (
            "the flows into B share the Connect group one, as their workers did; Java's dedicated mode needs"
            " a group for each flow"
        ),
    ]


def test_the_defaults_of_dedicated_mode_are_not_written() -> None:
    found, said = written(flow_into_b(A, "MirrorSourceConnector", group_id="A-mm2"))
    assert "B.group.id" not in found
    assert "A->B.name" not in found
    assert said == []


@pytest.mark.parametrize(("name", "kept"), [("mm2-msc-A", None), ("mm2-msc-A-B", None), ("mine", "mine")])
def test_a_name_without_its_topic(name: str, kept: str | None) -> None:
    found, said = written(flow_into_b(A, name))
    assert found.get("A->B.name") == kept
    assert said[0].startswith("A->B starts without positions unless B.offset.storage.topic is the topic")


def test_heartbeats_everywhere_need_no_words() -> None:
    heartbeats = {Kind.HEARTBEAT: Properties({"target.cluster.bootstrap.servers": "x:1"})}
    both = [MirroredFlow(Flow(*pair), heartbeats) for pair in ((A, B), (B, A))]
    assert not [key for key in written(*both)[0] if "heartbeats" in key]
    assert written(both[0])[0]["emit.heartbeats.enabled"] == "false"


@pytest.mark.parametrize(
    "value", ["", " ", " a", "a:b=c#d!e", "\\", "\\:", "a\\\\:b", "a\nb", "é😀", "#a", "=a", "\ta\f", "a "]
)
def test_written_properties_can_be_read(value: str) -> None:
    properties = {"clusters": "A", "A.a b:=#!": value, "key": value}
    assert parse_properties(properties_text(properties), "f") == properties
    assert properties_text(properties).isascii()


def test_written_properties_are_readable() -> None:
    given = {"clusters": "A, A.B", "A.x": "h:1", "A.B.y": "a b", "A->A.B.z": ".*", "A->A.B.w": "1"}
    assert properties_text(given) == (
        "clusters = A, A.B\n\nA.x = h:1\n\nA.B.y = a b\n\nA->A.B.z = .*\nA->A.B.w = 1\n"
    )
