"""Listing topics by Metadata requests that are encoded without kafka-python."""

from dataclasses import replace

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.topics import ListedTopic, TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.admin.topic_listing import TopicLister
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.wire.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from tests.contract.event_loop import WAIT_S
from tests.support.acls import in_force
from tests.support.broker_data import create_topic, topics
from tests.support.connections import connection
from tests.support.proxy import Api, Disruption, Moment, proxied
from tests.support.recorded_setup import Acl
from tests.support.waiting import await_value


@pytest.fixture
def broker(target_cluster: LocalCluster) -> Cluster:
    return Cluster(connection(target_cluster, alias="far"))


def test_same_listing_is_returned_while_topics_are_unchanged(
    broker: Cluster, target_cluster: LocalCluster
) -> None:
    lister, name = TopicLister(broker), "contract.listing"
    create_topic(target_cluster.bootstrap_servers, name, partitions=2)
    before = lister.read()
    assert before.topics[name].partitions == 2
    assert lister.read() is before
    assert {topic for topic in before.topics if not topic.startswith("__")} <= topics(target_cluster).keys()
    admin = Admin(connection(target_cluster, alias="far"))
    try:
        assert admin.grow_topics({name: 3}) == {name: None}
        await_value(lambda: lister.read().counts[name] == 3, WAIT_S, lambda: str(lister.read().topics[name]))
        assert lister.read().topics[name].topic_id == before.topics[name].topic_id
        assert admin.delete_topics({name: before.topics[name].topic_id}) == {name: None}
        await_value(lambda: name not in lister.read().topics, WAIT_S, lambda: "it's still there")
        assert admin.create_topics([TopicCreation(name, 1, 1, {})]) == {name: None}
        await_value(lambda: name in lister.read().topics, WAIT_S, lambda: "it isn't there")
        assert lister.read().topics[name].topic_id != before.topics[name].topic_id
        (refused,) = admin.delete_topics({name: before.topics[name].topic_id}).values()
        assert "UNKNOWN_TOPIC_ID" in str(refused)
        assert name in lister.read().topics
    finally:
        admin.close()
        broker.close()


def test_missing_topic_is_distinguished_from_an_unauthorized_one(
    broker: Cluster, frail_cluster: LocalCluster
) -> None:
    assert TopicLister(broker).named(["contract.nowhere"]) == {
        "contract.nowhere": ListedTopic(0, error=UNKNOWN_TOPIC_OR_PARTITION)
    }
    broker.close()
    hidden, admin = "contract.hidden", Admin(connection(frail_cluster, alias="frail"))
    others: Acl = ("TOPIC", "LITERAL", hidden, "User:other", "*", "READ", "ALLOW")
    create_topic(frail_cluster.bootstrap_servers, hidden)
    try:
        assert hidden in admin.listing().topics
        with in_force(frail_cluster, others):
            await_value(lambda: hidden not in admin.listing().topics, WAIT_S, lambda: "it's still listed")
            assert admin.named([hidden])[hidden].error == TOPIC_AUTHORIZATION_FAILED
        await_value(lambda: hidden in admin.listing().topics, WAIT_S, lambda: "it's still hidden")
    finally:
        admin.close()


def test_lost_connection_is_reopened(target_cluster: LocalCluster) -> None:
    host, port = target_cluster.bootstrap_servers.split(":")
    with proxied((host, int(port))) as (proxy,):
        settings = replace(connection(target_cluster), bootstrap_servers=(proxy.address,), alias="far")
        broker = Cluster(settings)
        lister = TopicLister(broker)
        first = lister.read()
        proxy.cut()
        assert lister.read().topics.keys() == first.topics.keys()
        proxy.disrupt_next(Api.METADATA, Moment.ANSWER_HALF_SENT, Disruption.RESET)
        assert lister.read().topics.keys() == first.topics.keys()
        proxy.refuse()
        proxy.cut()
        with pytest.raises(DisconnectedError, match="list topics on far: "):
            lister.read()
        broker.close()
