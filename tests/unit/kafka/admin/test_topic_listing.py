"""Metadata responses of every version are decoded as kafka-python encodes them."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.topics import ListedTopic, TopicListing
from sparkmirror.kafka.admin.topic_listing import TopicLister, decode_topics, encode_body
from sparkmirror.kafka.cluster import Cluster
from tests.support.canned_responses import CannedConnection, cluster_of

VERSIONS = range(7, 13)
Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Broker = MetadataResponse.MetadataResponseBroker


def partition(index: int, *, replicas: int = 1, offline: int = 0) -> Any:
    return Partition(
        error_code=5 if offline else 0,
        partition_index=index,
        leader_id=1,
        leader_epoch=7,
        replica_nodes=list(range(replicas)),
        isr_nodes=list(range(replicas)),
        offline_replicas=list(range(offline)),
    )


def topic(name: str, *partitions: Any, error: int = 0, internal: bool = False, number: int = 0) -> Any:
    return Topic(
        error_code=error,
        name=name,
        topic_id=uuid.UUID(int=number),
        is_internal=internal,
        partitions=list(partitions),
    )


def encoded(*topics: Any, version: int = 12, controller: int = 1) -> bytes:
    response = MetadataResponse(
        throttle_time_ms=3,
        brokers=[Broker(node_id=1, host="here", port=9092, rack=None)],
        cluster_id="cluster",
        controller_id=controller,
        topics=list(topics),
    )
    return bytes(response.encode(version=version))


def answering(*responses: bytes, version: int = 12) -> Cluster:
    """A broker that sends these responses, one after the other."""
    return cluster_of(CannedConnection(responses, version, flexible=version >= 9))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_the_same(version: int) -> None:
    topics = [
        topic("orders", *(partition(i, replicas=3) for i in range(300)), number=5),
        topic("ö" * 120, partition(0, replicas=2, offline=2)),
        topic("__internal", partition(0), internal=True),
        topic("gone", error=3),
    ]
    listing = TopicLister(answering(encoded(*topics, version=version), version=version)).read()
    known = uuid.UUID(int=5).bytes if version >= 10 else b""
    assert listing.topics == {
        "orders": ListedTopic(300, known),
        "ö" * 120: ListedTopic(1),
        "__internal": ListedTopic(1, is_internal=True),
        "gone": ListedTopic(0, error=3),
    }
    assert listing.counts == {"orders": 300, "ö" * 120: 1}


def test_equal_answers_are_one_listing_whichever_broker_is_the_controller() -> None:
    first, second = (encoded(topic("orders", partition(0)), controller=id_) for id_ in (1, 2))
    grown = encoded(topic("orders", partition(0), partition(1)))
    lister = TopicLister(answering(first, second, grown, first))
    listing = lister.read()
    assert lister.read() is listing
    assert lister.read().counts == {"orders": 2}
    assert lister.read() == listing


def test_an_answer_that_ends_too_early_is_a_broken_connection() -> None:
    whole = encoded(topic("orders", partition(0)), topic("more", partition(0)))

    for size in (5, 20, 40, 60, len(whole) - 10):
        with pytest.raises(
            DisconnectedError, match="list topics on there: there sent what is no response to"
        ):
            TopicLister(answering(whole[:size], whole[:size])).read()


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=200), st.integers(0, 20), st.integers(1, 200)), max_size=8
    )
)
def test_any_shape_is_read_as_it_was_written(shapes: list[tuple[str, int, int]]) -> None:
    topics = [
        topic(f"{number}{name}", *(partition(i, replicas=replicas) for i in range(partitions)))
        for number, (name, partitions, replicas) in enumerate(shapes)
    ]
    response = encoded(*topics)
    listing = TopicLister(answering(response)).read()
    assert listing == TopicListing(
        {f"{number}{name}": ListedTopic(partitions) for number, (name, partitions, _) in enumerate(shapes)}
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("names", [None, ["orders"], [f"topic-{i}" for i in range(200)]])
def test_requests_are_those_of_the_library(version: int, names: list[str] | None) -> None:
    asked = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    theirs = MetadataRequest(topics=asked, allow_auto_topic_creation=False).encode(version=version)
    assert encode_body(names, version) == bytes(theirs)


def test_nothing_is_no_topic() -> None:
    assert dict(decode_topics(b"\x01", 12)) == {}
