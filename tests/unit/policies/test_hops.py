"""Vectors of Kafka's MirrorClientTest."""

import pytest

from sparkmirror.policies.hops import hops, sources
from sparkmirror.policies.replication import DefaultReplicationPolicy, IdentityReplicationPolicy

DEFAULT = DefaultReplicationPolicy()


@pytest.mark.parametrize(
    ("topic", "alias", "expected"),
    [
        ("topic", "source", -1),
        ("source", "source", -1),
        ("sourcetopic", "source", -1),
        ("source1.topic", "source2", -1),
        ("source1.topic", "source1", 1),
        ("source2.source1.topic", "source1", 2),
        ("source2.source1.topic", "source2", 1),
        ("source3.source2.source1.topic", "source4", -1),
    ],
)
def test_hops_are_counted_by_the_name(topic: str, alias: str, expected: int) -> None:
    assert hops(DEFAULT, topic, alias) == expected


def test_a_chain_ends_where_a_cluster_repeats() -> None:
    assert sources(DEFAULT, "a.b.a.orders") == ["a", "b"]
    assert sources(IdentityReplicationPolicy(source_alias="us"), "orders") == ["us"]
    assert sources(DEFAULT, "orders") == []
