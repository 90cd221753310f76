"""Rings of flows that keep topic names are refused if a sample of their topics is mirrored by all of them."""

import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.settings.rings import RingFlow, check_rings
from tests.unit.settings.source_settings import MIRROR, source

RING = ("A->B", "B->C", "C->A")


def flow(name: str, topics: str = "orders.*", **more: str) -> RingFlow:
    here, _, there = name.partition("->")
    aliases = {"source.cluster.alias": here, "target.cluster.alias": there}
    identity = {"replication.policy.class": MIRROR + "IdentityReplicationPolicy"}
    return RingFlow(source(**{**aliases, **identity, "topics": topics, **more}))


def test_a_ring_of_three_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"A->B->C->A is a ring .* a topic like 'ordersx' would go round"):
        check_rings([flow(name) for name in RING])


def test_the_shortest_ring_is_named() -> None:
    flows = [*RING, "B->A", "C->D", "D->A"]
    with pytest.raises(ConfigError, match="A->B->C->A is a ring"):
        check_rings([flow(name) for name in flows])


@pytest.mark.parametrize(
    "names",
    [
        ("A->B", "B->A"),
        ("A->B", "B->C"),
        ("A->B", "B->A", "B->C", "C->B", "B->D", "D->B"),
        ("A->B", "A->C", "B->C"),
    ],
)
def test_flows_without_a_longer_ring_are_accepted(names: tuple[str, ...]) -> None:
    check_rings([flow(name) for name in names])


@pytest.mark.parametrize(
    "topics",
    [
        ("orders.*", "orders", "orders|payments"),
        (".*", r"us\.orders", r"us\.[a-z]+"),
        ("payments", r"\d+, orders", "orders, payments, 5"),
    ],
)
def test_topics_that_all_flows_mirror_are_found(topics: tuple[str, ...]) -> None:
    flows = [flow(name, patterns) for name, patterns in zip(RING, topics, strict=True)]
    if topics[0] == "payments":
        check_rings(flows)
    else:
        with pytest.raises(ConfigError, match="is a ring"):
            check_rings(flows)


def test_rings_of_other_topics_are_no_harm() -> None:
    flows = [flow(name, topics) for name, topics in zip(RING, ("a.*", "b.*", "c.*"), strict=True)]
    check_rings(flows)
    check_rings([flow("A->B", **{"topics.exclude": "orders.*"}), *(flow(name) for name in RING[1:])])


def test_heartbeats_go_round_too_where_their_names_are_kept() -> None:
    policy = {"replication.policy.class": "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"}
    flows = [flow(name, topics, **policy) for name, topics in zip(RING, ("a.*", "b.*", "c.*"), strict=True)]
    with pytest.raises(ConfigError, match="'heartbeats' would go round"):
        check_rings(flows)


@pytest.mark.parametrize(
    "more",
    [
        {"on.loop": "copy"},
        {"replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"},
    ],
)
def test_rings_with_cycles_allowed_or_visible_by_names_are_accepted(more: dict[str, str]) -> None:
    check_rings([flow("A->B", **more), *(flow(name) for name in RING[1:])])


def test_headers_make_rings_harmless_if_all_flows_write_them() -> None:
    header = {"provenance.header": "true"}
    flows = [flow(name, **header) for name in RING]
    check_rings(flows)
    with pytest.raises(ConfigError, match=r"is a ring .* Let all of them have provenance\.header=true"):
        check_rings([*flows[:2], flow(RING[2])])
    check_rings([flow("A->B", **header)._replace(has_producer_ids=False), flow("B->A")])


def test_without_producer_ids_two_are_a_ring() -> None:
    there, back = flow("A->B"), flow("B->A")
    with pytest.raises(ConfigError, match=r"enable\.idempotence: A->B->A would send .* A->B writes without"):
        check_rings([there._replace(has_producer_ids=False), back])
    check_rings([there._replace(has_producer_ids=False)])
