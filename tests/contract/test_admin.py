"""Topics, configs and ACLs of a real broker; one bad item never hides the others."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import AuthorizationError, KafkaError, TopicExistsError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, ConfigSource, TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.wire.error_codes import SECURITY_DISABLED
from tests.contract.event_loop import WAIT_S, writing
from tests.support.broker_data import config, create_topic, keyed_of, numbered, topics
from tests.support.connections import connection
from tests.support.waiting import await_value

ANYBODY: Final = "User:ANONYMOUS"
"""The principal of clients without TLS and SASL."""


@pytest.fixture(scope="module")
def admin(target_cluster: LocalCluster) -> Iterator[Admin]:
    made = Admin(connection(target_cluster, alias="far"))
    yield made
    made.close()


def test_topics_are_created_each_with_its_own_result(admin: Admin, target_cluster: LocalCluster) -> None:
    fine, taken, greedy, odd = (f"contract.admin-{name}" for name in ("fine", "taken", "greedy", "odd"))
    create_topic(target_cluster.bootstrap_servers, taken)
    results = admin.create_topics(
        [
            TopicCreation(fine, 3, 1, {"retention.ms": "1234567", "cleanup.policy": "compact"}),
            TopicCreation(taken, 1, 1, {}),
            TopicCreation(greedy, 1, 7, {}),
            TopicCreation(odd, 1, 1, {"retention.ms": "soon"}),
        ]
    )
    assert results[fine] is None
    assert isinstance(results[taken], TopicExistsError)
    assert said(results[greedy]).startswith(f"create topic {greedy} on far: INVALID_REPLICATION_FACTOR (")
    assert said(results[odd]).startswith(f"create topic {odd} on far: INVALID_CONFIG (")
    assert "soon" in said(results[odd])
    assert admin.await_partitions({fine: 3}, WAIT_S)[fine] == 3
    assert topics(target_cluster)[fine] == 3
    assert config(target_cluster, fine)["retention.ms"] == "1234567"


def test_topics_grow_and_never_shrink(admin: Admin, target_cluster: LocalCluster) -> None:
    growing, shrinking, missing = (f"contract.admin-{name}" for name in ("growing", "shrinking", "missing"))
    for topic in (growing, shrinking):
        create_topic(target_cluster.bootstrap_servers, topic, partitions=2)
    results = admin.grow_topics({growing: 5, shrinking: 1, missing: 2})
    assert results[growing] is None
    assert said(results[shrinking]).startswith(
        f"create partitions of {shrinking} on far: INVALID_PARTITIONS ("
    )
    assert said(results[missing]).startswith(
        f"create partitions of {missing} on far: UNKNOWN_TOPIC_OR_PARTITION"
    )
    seen = admin.await_partitions({growing: 5, shrinking: 2}, WAIT_S)
    assert (seen[growing], seen[shrinking]) == (5, 2)


def test_configs_have_their_source_and_change_one_by_one(admin: Admin, target_cluster: LocalCluster) -> None:
    topic, bad = "contract.admin-configs", "contract.admin-configs-bad"
    create_topic(
        target_cluster.bootstrap_servers, topic, config={"retention.ms": "1000", "segment.ms": "5000"}
    )
    create_topic(target_cluster.bootstrap_servers, bad)
    before = {entry.name: (entry.value, entry.source) for entry in admin.topic_configs([topic])[topic]}
    (named,) = admin.topic_configs([topic], ["retention.ms"])[topic]
    assert (named.value, named.source) == before["retention.ms"]
    assert before["retention.ms"] == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert before["max.message.bytes"] == ("1048588", ConfigSource.DEFAULT_CONFIG)
    results = admin.alter_configs(
        {
            topic: [
                AlterConfigOp("retention.ms", AlterConfigOpType.SET, "2000"),
                AlterConfigOp("segment.ms", AlterConfigOpType.DELETE),
            ],
            bad: [AlterConfigOp("retention.ms", AlterConfigOpType.SET, "soon")],
        }
    )
    assert results[topic] is None
    assert said(results[bad]).startswith(f"alter configs of {bad} on far: ")
    assert "soon" in said(results[bad])

    def after() -> dict[str, tuple[str | None, ConfigSource]]:
        return {entry.name: (entry.value, entry.source) for entry in admin.topic_configs([topic])[topic]}

    # The controller has changed it; the broker that describes it learns of that a moment later.
    await_value(
        lambda: after()["retention.ms"] == ("2000", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        WAIT_S,
        lambda: str(after()),
    )
    assert after()["segment.ms"][1] is ConfigSource.DEFAULT_CONFIG


def test_kafkas_internal_topics_are_not_listed(admin: Admin, target_cluster: LocalCluster) -> None:
    consumer = confluent.Consumer(
        {"bootstrap.servers": target_cluster.bootstrap_servers, "group.id": "contract.admin", "log_level": 0}
    )
    with suppress(confluent.KafkaException):  # a new topic of group offsets may have no leaders yet
        consumer.committed([confluent.TopicPartition("contract.admin-configs", 0)], timeout=WAIT_S)
    consumer.close()
    await_value(lambda: "__consumer_offsets" in topics(target_cluster), WAIT_S, lambda: "no offsets topic")
    assert "__consumer_offsets" not in admin.partition_counts()


def test_empty_request_is_not_sent(admin: Admin) -> None:
    assert (admin.create_topics([]), admin.grow_topics({}), admin.alter_configs({})) == ({}, {}, {})
    assert (admin.topic_configs([]), admin.create_acls([]), admin.delete_acls([])) == ({}, {}, {})


def test_cluster_without_authorizer_is_reported(admin: Admin) -> None:
    with pytest.raises(KafkaError, match=r"^describe ACLs on far: SECURITY_DISABLED") as error:
        admin.acls(ResourceType.TOPIC)
    assert error.value.code == SECURITY_DISABLED


def test_created_acls_are_listed_unchanged_and_enforced(frail_cluster: LocalCluster) -> None:
    topic = TopicPartition("contract.admin-acls", 0)
    create_topic(frail_cluster.bootstrap_servers, topic.topic)
    may_describe, may_write = (
        allowed(topic.topic, operation) for operation in (AclOperation.DESCRIBE, AclOperation.WRITE)
    )
    prefixed = AclBinding(
        ResourceType.TOPIC,
        PatternType.PREFIXED,
        "contract.nobody",
        "User:ännie",
        "10.0.0.1",
        AclOperation.READ,
        AclPermission.DENY,
    )
    admin = Admin(connection(frail_cluster, alias="frail"))
    try:
        assert admin.create_acls([may_describe, prefixed]) == {may_describe: None, prefixed: None}
        await_value(
            lambda: set(admin.acls(ResourceType.TOPIC)) == {may_describe, prefixed},
            WAIT_S,
            lambda: str(admin.acls(ResourceType.TOPIC)),
        )
        with writing(ProducerSettings(connection(frail_cluster)), [topic]) as writer:
            writer.append(topic, numbered(3))
            await_value(lambda: len(writer.refusals) > 0, WAIT_S, lambda: str(writer.failures))
            ((_, refusal),) = writer.refusals
            assert isinstance(refusal, AuthorizationError)
            assert str(refusal) == (
                f"produce to {topic}: TOPIC_AUTHORIZATION_FAILED; needs WRITE on topic {topic.topic}: "
                f"kafka-acls.sh --bootstrap-server {frail_cluster.bootstrap_servers} --add "
                f"--allow-principal {ANYBODY} --operation Write --topic {topic.topic}"
            )
            assert set(admin.create_acls([may_write, allowed(topic.topic, AclOperation.READ)]).values()) == {
                None
            }
            await_value(
                lambda: len(admin.acls(ResourceType.TOPIC)) == 4,
                WAIT_S,
                lambda: str(admin.acls(ResourceType.TOPIC)),
            )
            writer.append(topic, numbered(3))
            writer.await_acknowledged(topic, 3)
    finally:
        admin.close()
    assert keyed_of(frail_cluster, *topic) == numbered(3)


def allowed(topic: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, PatternType.LITERAL, topic, ANYBODY, "*", operation, AclPermission.ALLOW
    )


def said(result: KafkaError | None) -> str:
    assert result is not None
    return str(result)
