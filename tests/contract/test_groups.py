"""Reading groups of every kind from real brokers, also while one coordinator does not respond."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import AuthorizationError, DisconnectedError, KafkaError, RetriableError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.admin.tried_rights import is_denied
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups, Offsets
from sparkmirror.metrics.looks import GroupsLook
from sparkmirror.status.group_watch import GroupWatch
from tests.contract.checkpointing import checkpointing, flow_between
from tests.support.acls import in_force
from tests.support.broker_data import admin, append, create_topic, numbered
from tests.support.connections import connection
from tests.support.freezing import frozen
from tests.support.group_coordinators import move_coordinator
from tests.support.waiting import await_value, patience

TOPIC: Final = "contract.groups"
WAIT_S: Final = 20.0
PATIENCE_S: Final = 1.5


@contextmanager
def asking(cluster: LocalCluster, **changes: float) -> Iterator[Groups]:
    with closing(Groups(connection(cluster, **changes, alias="here"))) as groups:
        yield groups


def denied(cluster: LocalCluster, group: GroupId) -> AbstractContextManager[None]:
    """Nobody may do anything with the group."""
    return in_force(cluster, ("GROUP", "LITERAL", group, "User:ANONYMOUS", "*", "ALL", "DENY"))


def offsets(offset: int, topic: str = TOPIC) -> Offsets:
    return {TopicPartition(topic, 0): Committed(offset, "own words")}


def write(groups: Groups, group: GroupId, offset: int, topic: str = TOPIC) -> None:
    """Commit offsets, retrying while a new cluster creates the topic of group offsets."""

    def is_written() -> bool:
        try:
            return not groups.write(group, offsets(offset, topic))
        except RetriableError:
            return False

    await_value(is_written, WAIT_S, lambda: f"{group} gets no offset")


@pytest.fixture(scope="module")
def source(source_cluster: LocalCluster) -> LocalCluster:
    create_topic(source_cluster.bootstrap_servers, TOPIC)
    append(source_cluster, TOPIC, numbered(20))
    return source_cluster


@contextmanager
def members(source: LocalCluster, names: Mapping[GroupId, str]) -> Iterator[None]:
    """Groups, each of its protocol, whose one member has begun to read."""
    consumers = [
        confluent.Consumer(
            {
                "bootstrap.servers": source.bootstrap_servers,
                "group.id": group,
                "group.protocol": protocol,
                "client.id": f"reader-{protocol}",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        for group, protocol in names.items()
    ]
    try:
        for consumer in consumers:
            consumer.subscribe([TOPIC])
        for consumer in consumers:
            await_value(lambda one=consumer: bool(one.consume(1, 0.5)), WAIT_S, lambda: "no record")  # type: ignore[misc]
        yield
    finally:
        for consumer in consumers:
            consumer.close()


def test_members_of_every_group_protocol_are_listed(source: LocalCluster) -> None:
    names = {GroupId(f"contract-groups-{protocol}"): protocol for protocol in ("classic", "consumer")}
    with asking(source) as groups, members(source, names):
        listed = {group: groups.listed()[group] for group in names}
        assert [(each.word, each.is_active) for each in listed.values()] == [
            ("classic", True),
            ("consumer", True),
        ]
        for group, found in groups.members(listed).items():
            assert not isinstance(found, KafkaError), found
            assert [member.client_id for member in found] == [f"reader-{names[group]}"]
            assert str(found[0]).startswith(f"reader-{names[group]} at 127.0.0.1")
            refused = groups.write(group, offsets(3))
            assert set(refused) == {TopicPartition(TOPIC, 0)}, "an active group was written to"


def test_rights_on_groups_are_tried_without_a_change(source: LocalCluster) -> None:
    names = {GroupId(f"contract-tried-{protocol}"): protocol for protocol in ("classic", "consumer")}
    unknown = GroupId("contract-tried-unknown")
    with asking(source) as groups, members(source, names), closing(Cluster(connection(source))) as cluster:
        listed = {group: groups.listed()[group] for group in names}
        before = groups.members(listed)
        for group in (*names, unknown):
            for need in (Need.READ_GROUP, Need.DESCRIBE_GROUP):
                assert not is_denied(cluster, need.of(group))
        assert groups.members(listed) == before
        assert {group: groups.listed()[group] for group in names} == listed
        assert unknown not in groups.listed()


def test_a_group_that_may_not_be_described_is_told_with_the_right(frail_cluster: LocalCluster) -> None:
    """Nobody lists it."""
    hidden, open_one = GroupId("contract-hidden"), GroupId("contract-open")
    with asking(frail_cluster) as groups, denied(frail_cluster, hidden):
        await_value(lambda: groups.hidden([hidden, open_one]), WAIT_S, lambda: "nothing is denied")
        ((group, error),) = groups.hidden([hidden, open_one]).items()
    assert group == hidden
    assert isinstance(error, AuthorizationError)
    assert str(error).endswith("--operation Describe --group contract-hidden")


def test_share_group_is_recognized_and_takes_no_offsets(source: LocalCluster) -> None:
    group = GroupId("contract-groups-share")
    with (
        asking(source) as groups,
        confluent.ShareConsumer(
            {"bootstrap.servers": source.bootstrap_servers, "group.id": group, "log_level": 0}
        ) as consumer,
    ):
        consumer.subscribe([TOPIC])
        consumer.poll(0.5)
        await_value(lambda: group in groups.listed(), WAIT_S, lambda: "no share group")
        listed = groups.listed()[group]
        assert (listed.word, listed.commits_offsets) == ("share", False)
        committed = groups.committed([group])[group]
        assert isinstance(committed, KafkaError) or not committed
        assert set(groups.write(group, offsets(3))) == {TopicPartition(TOPIC, 0)}


def test_group_without_rights_does_not_hinder_others(frail_cluster: LocalCluster) -> None:
    create_topic(frail_cluster.bootstrap_servers, TOPIC)
    well, sick = (GroupId(f"contract-groups-{word}-{uuid.uuid4().hex[:6]}") for word in ("well", "sick"))
    with asking(frail_cluster) as groups, ExitStack() as later:
        for group in (well, sick):
            write(groups, group, 7)
        later.enter_context(denied(frail_cluster, sick))
        await_value(
            lambda: isinstance(groups.committed([sick])[sick], AuthorizationError),
            WAIT_S,
            lambda: "nothing is denied",
        )
        found = groups.committed([sick, well])
        assert found[well] == offsets(7)
        with pytest.raises(AuthorizationError, match=f"{sick} .*on here"):
            raise found[sick]  # type: ignore[misc]  # it's one
        members = groups.members({sick: groups.listed()[well]})[sick]
        assert isinstance(members, AuthorizationError)
        assert f"needs DESCRIBE on group {sick}: kafka-acls.sh --bootstrap-server " in str(members)


def test_groups_that_can_be_read_no_more_are_told_with_their_errors(
    frail_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    """Brokers list no group that may not be described, as they list none whose coordinator is away."""
    topic = f"{TOPIC}.watched"
    create_topic(frail_cluster.bootstrap_servers, topic)
    create_topic(frail_cluster.bootstrap_servers, "mm2-offset-syncs.H.internal")
    group = GroupId(f"contract-groups-{uuid.uuid4().hex[:6]}")
    with asking(frail_cluster) as groups:
        write(groups, group, 7, topic)
    flow = flow_between(("G", frail_cluster), ("H", target_cluster), {"topics": topic, "groups": group})
    assert flow.checkpoint is not None
    watch = GroupWatch(flow.flow, flow.checkpoint)
    with checkpointing(
        ("G", frail_cluster), ("H", target_cluster), {"topics": topic, "groups": group}
    ) as run:
        of = GroupsLook(flow.flow, flow.checkpoint.name, "checkpoint")

        def noted() -> GroupsLook:
            return run.looks.look(of, 0.0)

        def watched() -> GroupsLook:
            watch.read()
            return watch.look()

        assert [it.committed for it in watched().partitions or ()] == [7]
        await_value(lambda: noted().partitions or None, WAIT_S, lambda: str(noted()))
        with denied(frail_cluster, group):
            await_value(lambda: watched().errors or None, WAIT_S, lambda: str(watch.look()))
            assert f"needs DESCRIBE on group {group}" in watch.look().errors[group]
            assert list(watch.look().partitions or ()) == []
            found = await_value(lambda: noted().errors or None, WAIT_S, lambda: str(noted()))
            assert f"needs DESCRIBE on group {group}" in found[group]
        await_value(lambda: watched().partitions or None, WAIT_S, lambda: str(watch.look()))
        assert watch.look().errors == {}
    watch.close()


def pid_of_coordinator(cluster: LocalCluster, group: GroupId) -> int:
    client = admin(cluster)  # a closed client would cancel the request
    (described,) = client.describe_consumer_groups([group]).values()
    coordinator = described.result(WAIT_S).coordinator.id
    (place,) = [at for at, broker in enumerate(cluster.brokers) if broker.node_id == coordinator]
    return cluster.pids[place]


def test_groups_of_a_silent_coordinator_are_read_last(trio: LocalCluster) -> None:
    create_topic(trio.bootstrap_servers, TOPIC)
    names = [GroupId(f"contract-groups-{number}") for number in range(20)]
    with asking(trio, request_timeout_s=PATIENCE_S * patience()) as groups:
        for group in names:
            write(groups, group, 7)
        if pid_of_coordinator(trio, names[0]) == pid_of_coordinator(trio, names[1]):
            move_coordinator(trio, names[1])  # after broker failures one may coordinate all groups
        silenced = pid_of_coordinator(trio, names[0])

        def answered_by_another() -> bool:
            # The former coordinator answers for a moment longer, and is asked until it refuses.
            with frozen(silenced):
                return groups.committed([names[1]])[names[1]] == offsets(7)

        await_value(
            answered_by_another, WAIT_S, lambda: f"{names[1]} is asked of the coordinator of {names[0]}"
        )
        with frozen(silenced):
            first = groups.committed(names)
            again = list(groups.committed_parts(names))
        silent = {group for group, found in first.items() if isinstance(found, DisconnectedError)}
        assert names[0] in silent
        assert len(silent) < len(names)
        assert all(found == offsets(7) for group, found in first.items() if group not in silent)
        are_well = [all(not isinstance(found, KafkaError) for found in part.values()) for part in again]
        assert are_well == sorted(are_well, reverse=True), "a group waited for the silent coordinator"
        await_value(
            lambda: all(found == offsets(7) for found in groups.committed(names).values()),
            WAIT_S,
            lambda: str(groups.committed(names)),
        )
