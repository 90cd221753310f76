"""Sync of the topics themselves, without Spark: creation and new partitions; nothing is deleted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sparkmirror.clusters import LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import ConfiguredSource, configured_flow
from sparkmirror.settings.topic_selection import remote_topic
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_sync import Topics, TopicSync
from tests.contract.event_loop import WAIT_S
from tests.support.broker_data import append, keyed, numbered, topics
from tests.support.waiting import await_value

NAMES: Final = tuple(f"contract.synced.{name}" for name in "abcde")


@dataclass
class SyncedFlow:
    """A flow L->target and its topic sync."""

    connector: ConfiguredSource
    admins: FlowAdmins

    def __post_init__(self) -> None:
        log = flow_log("tests.topic_life", self.connector.settings.flow, self.connector.name)
        self.sync = TopicSync(self.connector.settings, self.admins, log)

    def step(self) -> Topics:
        planned = self.sync.plan()
        self.sync.apply(planned.plan)
        return planned

    def step_until(self, holds: Callable[[Topics], bool]) -> Topics:
        def step() -> Topics | None:
            planned = self.step()
            return planned if holds(planned) else None

        return await_value(step, WAIT_S, lambda: str(self.step().plan))

    def await_unchanged(self) -> None:
        """Until two steps see the same: nothing is decoded or planned then.

        Brokers list topics before they have learned of their leaders, so the first steps may differ.
        """

        def step() -> Topics | None:
            planned = self.step()
            return planned if self.step() is planned else None

        await_value(step, WAIT_S, lambda: "two steps differ though nothing has changed")

    def delete_at_source(self, topic: str) -> None:
        assert self.admins.source.delete_topics({topic: b""}) == {topic: None}

    def create_at_source(self, *names: str, partitions: int = 1) -> None:
        created = self.admins.source.create_topics([TopicCreation(name, partitions, 1, {}) for name in names])
        assert set(created.values()) == {None}

    @property
    def copies(self) -> dict[str, str]:
        """The names that the source's topics have on the target."""
        return {name: remote_topic(self.connector.settings, name) for name in NAMES}


@contextmanager
def synced_flow(
    source: LocalCluster, target: LocalCluster, alias: str, policy: str = "DefaultReplicationPolicy"
) -> Iterator[SyncedFlow]:
    properties = {
        "clusters": f"{alias}, target",
        f"{alias}.bootstrap.servers": source.bootstrap_servers,
        "target.bootstrap.servers": target.bootstrap_servers,
        f"{alias}->target.enabled": "true",
        f"{alias}->target.topics": r"contract\.synced\..*",
        "replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "replication.policy.class": f"org.apache.kafka.connect.mirror.{policy}",
    }
    config = next(
        flow for flow in MirrorMakerConfig(Properties(properties), {}).flows() if flow.flow.source == alias
    )
    settings = configured_flow(config)
    assert settings.source is not None
    admins = FlowAdmins(settings.flow, settings.source)
    flow = SyncedFlow(settings.source, admins)
    try:
        yield flow
    finally:
        for admin, ours in ((admins.source, set(NAMES)), (admins.target, set(flow.copies.values()))):
            admin.delete_topics(dict.fromkeys(ours & admin.partition_counts().keys(), b""))
        admins.close()


def test_topics_are_created_and_grown(source_cluster: LocalCluster, target_cluster: LocalCluster) -> None:
    a, b, *_ = NAMES
    with synced_flow(source_cluster, target_cluster, "L") as flow:
        flow.create_at_source(*NAMES)
        flow.step_until(lambda seen: {f"L.{name}" for name in NAMES} <= seen.target.keys())
        flow.await_unchanged()

        assert flow.admins.source.grow_topics({b: 3}) == {b: None}
        assert flow.admins.target.grow_topics({f"L.{a}": 2}) == {f"L.{a}": None}
        seen = flow.step_until(lambda seen: seen.target[f"L.{b}"] == 3 and seen.target[f"L.{a}"] == 2)
        assert [note.name for note in seen.plan.notes] == [f"L.{a}"]


def test_the_copy_of_a_deleted_topic_stays_and_is_named(
    source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    a, *_ = NAMES
    with synced_flow(source_cluster, target_cluster, "L") as flow:
        flow.create_at_source(*NAMES)
        flow.step_until(lambda seen: {f"L.{name}" for name in NAMES} <= seen.target.keys())
        flow.delete_at_source(a)
        seen = flow.step_until(lambda seen: bool(seen.plan.notes))
        (note,) = seen.plan.notes
        assert str(note) == f"L.{a}: the source has no {a} any more, or hides it; this copy stays"
        assert seen.gone == 1
        assert f"L.{a}" in topics(target_cluster)


def test_a_topic_whose_name_the_policy_keeps_stays_with_the_records_of_others(
    source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    a, *_ = NAMES
    with synced_flow(source_cluster, target_cluster, "K", "IdentityReplicationPolicy") as flow:
        flow.create_at_source(*NAMES)
        flow.step_until(lambda seen: set(NAMES) <= seen.target.keys())
        append(target_cluster, a, numbered(50))
        flow.delete_at_source(a)
        flow.step_until(lambda seen: a not in seen.source)
        flow.step()
        assert keyed(target_cluster, a) == numbered(50)
