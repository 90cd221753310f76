"""Sync of the topics themselves: creation, new partitions and deletion, without Spark."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import LogIdentity, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource, configured_flow
from sparkmirror.settings.topic_selection import remote_topic
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_delete_plan import DeleteTopic
from sparkmirror.setup.topic_delete_sync import TopicDeleteSync, read_missed
from sparkmirror.setup.topic_sync import Topics, TopicSync
from sparkmirror.storage.positions import Position, position_record
from sparkmirror.storage.topic_creation import (
    COMPACTED,
    ensure_topics,
)
from tests.contract.event_loop import WAIT_S
from tests.support.broker_data import append, keyed, numbered, topics
from tests.support.waiting import await_value

GRACE_S: Final = 1000
NAMES: Final = tuple(f"contract.synced.{name}" for name in "abcde")


@dataclass
class Clock:
    """Epoch seconds."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class SyncedFlow:
    """A flow L->target and its topic sync, which `restart` replaces by a new one."""

    settings: ConfiguredFlow
    connector: ConfiguredSource
    admins: FlowAdmins
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.sync = self._new_sync()

    def restart(self) -> None:
        self.sync.close()
        self.sync = self._new_sync()

    def _new_sync(self) -> TopicSync:
        log = flow_log("tests.topic_life", self.settings.flow, self.connector.name)
        deletes = TopicDeleteSync(self.settings, self.connector, self.admins, log, self.clock)
        return TopicSync(self.connector.settings, self.admins, log, deletes)

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

    def store_positions(self) -> None:
        """Store positions as if a record of each topic had been copied."""
        there = self.admins.target.listing().topics
        source = self.settings.flow.source
        records = [
            position_record(
                self.connector.name,
                source,
                TopicPartition(name, 0),
                Position(7, logs=LogIdentity(b"s" * 16, 0, there[copy].topic_id)),
            )
            for name, copy in self.copies.items()
        ]
        writer = TopicWriter(self.settings.worker_client)
        writer.write(self.settings.worker.offset_topic.name, records)
        writer.close()

    @property
    def copies(self) -> dict[str, str]:
        """The names that the source's topics have on the target."""
        return {name: remote_topic(self.connector.settings, name) for name in NAMES}

    @property
    def missed(self) -> set[str]:
        topic = StateTopic.PROGRESS.of(self.settings.flow.source)
        return set(read_missed(self.settings.worker_client, topic, self.connector.name))


@contextmanager
def synced_flow(
    source: LocalCluster,
    target: LocalCluster,
    alias: str,
    deletes: str,
    policy: str = "DefaultReplicationPolicy",
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
        "sync.topic.deletes": deletes,
        "sync.topic.deletes.grace.seconds": str(GRACE_S),
    }
    config = next(
        flow for flow in MirrorMakerConfig(Properties(properties), {}).flows() if flow.flow.source == alias
    )
    settings = configured_flow(config)
    assert settings.source is not None
    admins = FlowAdmins(settings.flow, settings.source)
    own = [settings.worker.offset_topic.name, StateTopic.PROGRESS.of(settings.flow.source)]
    flow = SyncedFlow(settings, settings.source, admins)
    try:
        ensure_topics(admins.target, [TopicCreation(name, 1, 1, COMPACTED) for name in own])
        yield flow
    finally:
        for admin, ours in ((admins.source, set(NAMES)), (admins.target, set(flow.copies.values()))):
            admin.delete_topics(dict.fromkeys(ours & admin.partition_counts().keys(), b""))
        flow.sync.close()
        admins.close()


def test_topics_are_created_grown_and_deleted(
    source_cluster: LocalCluster, target_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    a, b, *_ = NAMES
    with synced_flow(source_cluster, target_cluster, "L", "true") as flow:
        flow.create_at_source(*NAMES)
        flow.step_until(lambda seen: {f"L.{name}" for name in NAMES} <= seen.target.keys())
        flow.store_positions()
        flow.await_unchanged()

        assert flow.admins.source.grow_topics({b: 3}) == {b: None}
        assert flow.admins.target.grow_topics({f"L.{a}": 2}) == {f"L.{a}": None}
        seen = flow.step_until(lambda seen: seen.target[f"L.{b}"] == 3 and seen.target[f"L.{a}"] == 2)
        assert [note.name for note in seen.plan.notes] == [f"L.{a}"]

        flow.delete_at_source(a)
        (gone,) = flow.step_until(lambda seen: bool(seen.plan.deletes)).plan.deletes
        topic_id = flow.admins.target.listing().topics[f"L.{a}"].topic_id
        assert gone == DeleteTopic(f"L.{a}", a, topic_id, flow.clock.now + GRACE_S)
        assert flow.missed == {a}
        flow.clock.now += GRACE_S - 1
        flow.restart()
        assert flow.step().plan.deletes == (gone,)
        assert f"L.{a}" in topics(target_cluster)

        flow.delete_at_source(b)
        flow.step_until(lambda seen: len(seen.plan.deletes) == 2)
        assert flow.missed == {a, b}
        flow.create_at_source(b)
        flow.step_until(lambda seen: len(seen.plan.deletes) == 1)
        assert flow.missed == {a}

        flow.clock.now += 1
        flow.step_until(lambda seen: f"L.{a}" not in seen.target)
        flow.clock.now += GRACE_S
        flow.step_until(lambda seen: not seen.plan.deletes)
        assert {f"L.{name}" for name in NAMES if name != a} <= topics(target_cluster).keys()
        assert flow.missed == set()
    assert caplog.messages.count(f"deleted L.{a}: {a} is gone from the source") == 1
    assert any(
        f"L.{b}: {b} is gone from the source; its copy is deleted unless" in said for said in caplog.messages
    )


def test_a_dry_run_logs_deletions_and_deletes_nothing(
    source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    a, b, c, *_ = NAMES
    with synced_flow(source_cluster, target_cluster, "D", "dry-run") as flow:
        flow.create_at_source(*NAMES)
        flow.step_until(lambda seen: {f"D.{name}" for name in NAMES} <= seen.target.keys())
        flow.store_positions()
        flow.delete_at_source(a)
        (note,) = flow.step_until(lambda seen: bool(seen.plan.notes)).plan.notes
        assert "its copy would be deleted after 2023-11-14 22:30:00+00:00" in note.text
        flow.clock.now += GRACE_S + 1
        flow.restart()
        assert flow.step().plan.notes[0].name == f"D.{a}"
        flow.delete_at_source(b)
        flow.delete_at_source(c)
        held = flow.step_until(lambda seen: seen.plan.held is not None).plan.held
        assert held == "3 of the 5 topics that were copied are missing at the source at once"
        assert {f"D.{name}" for name in NAMES} <= topics(target_cluster).keys()


def test_a_topic_whose_name_the_policy_keeps_stays_with_the_records_of_others(
    source_cluster: LocalCluster, target_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    a, *_ = NAMES
    with synced_flow(source_cluster, target_cluster, "K", "true", "IdentityReplicationPolicy") as flow:
        flow.create_at_source(*NAMES)
        flow.step_until(lambda seen: set(NAMES) <= seen.target.keys())
        flow.store_positions()
        append(target_cluster, a, numbered(50))
        flow.delete_at_source(a)
        flow.step_until(lambda seen: a not in seen.source and bool(seen.plan.notes or seen.plan.deletes))
        flow.clock.now += GRACE_S + 1
        flow.step()
        flow.restart()
        planned = flow.step()
        assert keyed(target_cluster, a) == numbered(50)
        assert planned.plan.deletes == ()
        (note,) = planned.plan.notes
        assert (note.name, note.source) == (a, a)
        assert "its copy stays: its name does not show that it is a copy" in note.text
        assert planned.plan.held is not None
    line = f"no topic is deleted on the target: {planned.plan.held}"
    assert [said.endswith(line) for said in caplog.messages].count(True) == 2, "once for each start"
