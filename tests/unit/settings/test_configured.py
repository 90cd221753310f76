"""A flow's settings are complete and validated before the start."""

import time

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.offsets.checkpoints import target_topic
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from sparkmirror.settings.topic_selection import remote_topic

PROPERTIES = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a1:9092, a2:9093",
    "B.bootstrap.servers": "b:9092",
}


def settings(**more: str) -> dict[str, ConfiguredFlow]:
    config = MirrorMakerConfig(Properties(PROPERTIES | more), {})
    return {str(flow.flow): configured_flow(flow) for flow in config.flows()}


def test_a_flow_that_is_not_enabled_only_emits_heartbeats() -> None:
    flows = settings(**{"A->B.enabled": "true"})
    assert flows["A->B"].source is not None
    assert flows["B->A"].source is None
    assert flows["B->A"].heartbeat.settings.emit
    assert flows["B->A"].heartbeat.target_admin.bootstrap_servers == (("a1", 9092), ("a2", 9093))


def test_each_client_goes_to_its_side() -> None:
    flow = settings(**{"A->B.enabled": "true", "tasks.max": "2"})["A->B"]
    assert flow.source is not None
    here, there = (("a1", 9092), ("a2", 9093)), (("b", 9092),)
    assert flow.worker_client.bootstrap_servers == there
    assert flow.source.source_admin.bootstrap_servers == here
    assert flow.source.target_admin.bootstrap_servers == there
    assert flow.source.offset_syncs_admin.bootstrap_servers == here
    assert [flow.source.consumer_of(task).connection.bootstrap_servers for task in (0, 1)] == [here] * 2
    assert [flow.source.producer_of(task).connection.bootstrap_servers for task in (0, 1)] == [there] * 2


def test_nothing_grows_with_the_most_tasks() -> None:
    before = time.process_time()
    flow = settings(**{"A->B.enabled": "true", "tasks.max": "2000000000"})["A->B"]
    assert time.process_time() - before < 2
    assert flow.source is not None
    assert flow.source.writes_producer_ids
    last = 1_999_999_999
    assert flow.source.consumer_of(last).connection.client_id.startswith(
        f"A->B|MirrorSourceConnector-{last}|"
    )


def test_connectors_are_named_as_java_names_them() -> None:
    flow = settings(**{"A->B.enabled": "true"})["A->B"]
    assert flow.source is not None
    assert (flow.source.name, flow.heartbeat.name) == ("MirrorSourceConnector", "MirrorHeartbeatConnector")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"tasks.max": "none"}, "tasks.max"),
        ({"A->B.topics": "[a-"}, "topics"),
        ({"A.consumer.isolation.level": "read_most"}, "isolation.level"),
        ({"A->B.producer.override.acks": "2"}, "acks"),
        ({"B.offset.storage.partitions": "0"}, "offset.storage.partitions"),
        ({"B.security.protocol": "SASL_SSL"}, "sasl.jaas.config"),
        ({"A.security.protocol": "SSL", "A.ssl.provider": "BC"}, "ssl.provider"),
    ],
)
def test_an_unusable_setting_is_refused_with_its_key(given: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**{"A->B.enabled": "true", **given})
    assert key in caught.value.key


def test_strimzis_former_policy_is_logged_once_a_flow(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    policy = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
    flow = settings(**{"A->B.enabled": "true", "replication.policy.class": policy})["A->B"]
    assert flow.source is not None
    assert flow.source.settings.policy.format_remote_topic("A", "orders") == "orders"
    (said,) = caplog.messages
    assert said.startswith(f"A->B: replication.policy.class={policy}: Strimzi removed it; Kafka's")


def test_an_admin_of_peoples_own_is_every_connectors() -> None:
    admin = "tests.support.example_plugins:Choosy"
    flow = settings(**{"A->B.enabled": "true", "forwarding.admin.class": admin})["A->B"]
    assert flow.source is not None
    assert flow.checkpoint is not None
    for connector in (flow.source, flow.checkpoint, flow.heartbeat):
        assert connector.admin_plugins.name == admin
        assert connector.admin_plugins.properties["A"]["bootstrap.servers"] == "a1:9092, a2:9093"
        assert connector.admin_plugins.properties["B"]["bootstrap.servers"] == "b:9092"
    with pytest.raises(ConfigError, match=r"forwarding\.admin\.class: there is no Java here"):
        settings(**{"A->B.enabled": "true", "forwarding.admin.class": "com.acme.Admin"})


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"B.exactly.once.source.support": "enabled", "A->B.offsets.preserve.topics": "orders"},
            "is for all topics or none .* remove offsets.preserve.topics",
        ),
        ({"B.producer.enable.idempotence": "false"}, "needs sequences"),
        ({"A->B.consumer.auto.offset.reset": "latest"}, "needs auto.offset.reset=earliest"),
        (
            {
                "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
                "provenance.header": "true",
            },
            "records are the source's",
        ),
    ],
)
def test_what_does_not_go_with_preserved_offsets(more: dict[str, str], reason: str) -> None:
    flow = {"A->B.enabled": "true"}
    assert settings(**flow, **{"A->B.offsets.preserve": "true"})["A->B"].source is not None
    with pytest.raises(ConfigError, match=rf"offsets\.preserve.*{reason}"):
        settings(**flow, **more, **{"A->B.offsets.preserve": "true"})


def test_preserved_offsets_need_no_transactions(caplog: pytest.LogCaptureFixture) -> None:
    """Whose commits take offsets."""
    caplog.set_level("INFO")
    enabled = {"A->B.enabled": "true", "B.exactly.once.source.support": "enabled"}
    before = settings(**enabled)["A->B"].source
    assert before is not None
    assert before.transactions is not None
    required = {"A.consumer.isolation.level": "read_committed", "A->B.exactly.once.support": "required"}
    preserving = settings(**enabled, **required, **{"A->B.offsets.preserve": "true"})["A->B"].source
    assert preserving is not None
    assert preserving.transactions is None
    assert preserving.writes_producer_ids
    (said,) = caplog.messages
    assert said.startswith("A->B: copying without transactions, since offsets.preserve is set")


def test_all_topics_of_workers_are_state_topics_of_every_flow() -> None:
    """Workers of a file store their state on the source of the opposite flow."""
    more = {
        "A->B.enabled": "true",
        "B->A.enabled": "true",
        "offset.storage.topic": "positions",
        "A.status.storage.topic": "status-of-a",
    }
    of_workers = {
        "positions",
        "status-of-a",
        "mm2-status.A.internal",
        "mm2-configs.A.internal",
        "mm2-configs.B.internal",
    }
    for flow in settings(**more).values():
        assert flow.source is not None
        assert flow.source.settings.state_topics == of_workers


def test_a_flow_s_transforms_are_for_its_source_connector() -> None:
    flow = settings(**{"A->B.enabled": "true", "A->B.transforms": "a", "A->B.transforms.a.type": "Filter"})[
        "A->B"
    ]
    assert flow.source is not None
    assert flow.source.settings.copying.transforms is not None
    assert flow.checkpoint is not None


def test_a_router_names_topics_for_all_connectors() -> None:
    router = {
        "A->B.transforms": "gone, plain",
        "A->B.transforms.gone.type": "Filter",
        "A->B.transforms.plain.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "A->B.transforms.plain.regex": r"A\.(eu-.*)",
        "A->B.transforms.plain.replacement": "$1-of-a",
    }
    flow = settings(**{"A->B.enabled": "true", **router})["A->B"]
    assert flow.source is not None
    assert flow.checkpoint is not None
    source, checkpoint = flow.source.settings, flow.checkpoint.settings
    for topic, remote in {"eu-orders": "eu-orders-of-a", "orders": "A.orders"}.items():
        assert remote_topic(source, topic) == remote
        assert target_topic(checkpoint.policy, flow.flow, topic) == remote
    assert not source.names_show_origin
    assert checkpoint.checkpoints_topic == "A.checkpoints.internal"


def test_a_transform_without_its_options_names_where_they_belong() -> None:
    with pytest.raises(ConfigError, match=r"transforms\.a\.type: is missing; .* below SOURCE->TARGET"):
        settings(**{"A->B.enabled": "true", "transforms": "a", "transforms.a.type": "Filter"})
