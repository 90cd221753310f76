"""Listing the groups of a cluster in memory while one of its brokers can't be reached."""

from contextlib import closing

import pytest

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups, ListedGroup
from tests.memory.client_run import client_run

PARTITION = TopicPartition("orders", 0)
NAMES = [GroupId(f"group-{at}") for at in range(12)]


@pytest.mark.parametrize("unreachable", [0, 1, 2])
def test_groups_of_the_other_coordinators_are_listed_and_read(unreachable: int) -> None:
    with client_run() as run:
        cluster = run.cluster("A", brokers=3)
        cluster.create(PARTITION.topic)
        with closing(Groups(run.connection(cluster))) as groups:
            for name in NAMES:
                assert groups.write(name, {PARTITION: Committed(0, "")}) == {}
            assert groups.listed().keys() == set(NAMES)
            broker = cluster.brokers[unreachable]
            theirs = {name for name in NAMES if cluster.coordinator(name) is broker}
            run.network.add("10.255.255.1", broker.port, _Nothing())
            broker.host = "10.255.255.1"
        with closing(Groups(run.connection(cluster))) as groups:
            listing = groups.listing()
            assert listing.groups.keys() == set(NAMES) - theirs
            (error,) = listing.errors
            assert "can't connect to 10.255.255.1:9092" in str(error)
            assert str(error).startswith("list groups on ")
            with pytest.raises(DisconnectedError):
                groups.listed()
            committed = groups.committed(NAMES)
            assert {
                name for name, found in committed.items() if isinstance(found, DisconnectedError)
            } == theirs


class _Nothing:
    """An address where no broker is."""

    is_up = False

    def receive(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("kind", "protocol", "word"),
    [
        ("classic", "consumer", "classic"),
        ("classic", "", "classic"),
        ("classic", "connect", "connect"),
        ("", "connect", "connect"),  # of a broker before 4.0
        ("consumer", "consumer", "consumer"),
        ("share", "share", "share"),
        ("", "", "unknown"),
    ],
)
def test_a_group_is_called_what_tells_it_from_consumer_groups(kind: str, protocol: str, word: str) -> None:
    assert ListedGroup(kind, "Stable", protocol).word == word
