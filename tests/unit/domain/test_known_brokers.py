"""The addresses of a cluster are tried in an order, and are not kept for ever."""

from collections.abc import Sequence

import pytest

from sparkmirror.domain.known_brokers import Address, KnownBrokers

B0: Address = ("b0", 9092)
B1: Address = ("b1", 9092)
B2: Address = ("b2", 9092)
BOOTSTRAP: Address = ("bootstrap", 9092)
SERVERS = (BOOTSTRAP, B0)


def servers_of(cluster: int) -> tuple[Address]:
    return ((f"bootstrap-{cluster}", 9092),)


@pytest.fixture
def known() -> KnownBrokers:
    return KnownBrokers(clusters_max=3, unreachable_max=3)


def test_before_any_metadata_the_bootstrap_servers_are_tried_in_their_order(known: KnownBrokers) -> None:
    assert known.addresses(SERVERS) == [BOOTSTRAP, B0]


def test_brokers_of_the_last_metadata_come_before_the_bootstrap_servers_each_once(
    known: KnownBrokers,
) -> None:
    known.note_metadata(SERVERS, [B2])
    known.note_metadata(SERVERS, [B0, B1])
    tried = known.addresses(SERVERS)
    assert set(tried[:2]) == {B0, B1}
    assert tried[2:] == [BOOTSTRAP]


def test_brokers_are_known_of_the_cluster_with_the_same_bootstrap_servers_only(known: KnownBrokers) -> None:
    known.note_metadata(SERVERS, [B1])
    assert known.addresses((BOOTSTRAP,)) == [BOOTSTRAP]


def test_unreachable_addresses_come_last_until_they_are_reached(known: KnownBrokers) -> None:
    known.note_metadata(SERVERS, [B1])
    known.note_failure(B1)
    known.note_failure(BOOTSTRAP)
    assert known.addresses(SERVERS) == [B0, B1, BOOTSTRAP]
    known.note_success(B1)
    assert known.addresses(SERVERS) == [B1, B0, BOOTSTRAP]


def test_cluster_whose_metadata_is_the_oldest_is_forgotten_first(known: KnownBrokers) -> None:
    def remembered() -> Sequence[int]:
        return [cluster for cluster in range(5) if B1 in known.addresses(servers_of(cluster))]

    for cluster in (0, 1, 2, 0):
        known.note_metadata(servers_of(cluster), [B1])
    assert remembered() == [0, 1, 2]
    known.note_metadata(servers_of(3), [B1])
    known.note_metadata(servers_of(4), [B1])
    assert remembered() == [0, 3, 4]


def test_address_that_failed_longest_ago_is_forgotten_first(known: KnownBrokers) -> None:
    for address in (B0, B1, B2, B0, BOOTSTRAP):
        known.note_failure(address)
    assert known.addresses((B0, B1, B2, BOOTSTRAP)) == [B1, B0, B2, BOOTSTRAP]
