"""Task plans of copy jobs: partitions, clients and state topics."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.copy.copy_plan import TaskPlan, TransactionPlan
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.mirror.copy_jobs import Announced, task_plans
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource, configured_flow
from sparkmirror.settings.copy_partition import CopyPartition

PROPERTIES = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
    "tasks.max": "4",
}
PARTITIONS = [CopyPartition(TopicPartition("orders", number), "A.orders") for number in range(10)]


def flow(more: Mapping[str, str]) -> tuple[ConfiguredFlow, ConfiguredSource]:
    (config,) = MirrorMakerConfig(Properties({**PROPERTIES, **more}), {}).flows()
    settings = configured_flow(config)
    assert settings.source is not None
    return settings, settings.source


def plans(more: Mapping[str, str] | None = None, *, partitions: int = 10, slots: int = 16) -> list[TaskPlan]:
    return task_plans(*flow(more or {}), Announced(7, 1234), PARTITIONS[:partitions], slots)


@pytest.mark.parametrize(
    ("partitions", "slots", "tasks"), [(10, 16, 4), (3, 16, 3), (10, 2, 2), (10, 0, 1), (1, 1, 1)]
)
def test_task_count_is_bounded_by_tasks_max_partitions_and_slots(
    partitions: int, slots: int, tasks: int
) -> None:
    assignment = plans(partitions=partitions, slots=slots)
    assert [plan.task for plan in assignment] == list(range(tasks))
    copied = [partition for plan in assignment for partition in plan.partitions]
    assert sorted(copied, key=lambda each: each.source) == PARTITIONS[:partitions]
    sizes = [len(plan.partitions) for plan in assignment]
    assert max(sizes) - min(sizes) <= 1


def test_partitions_follow_the_given_assignment() -> None:
    """By load, for one."""
    hot, *others = (partition.source for partition in PARTITIONS)
    assignment = task_plans(
        *flow({}), Announced(2, 0), PARTITIONS, 2, assigner=lambda _, count: ((hot,), tuple(others))[:count]
    )
    assert [[partition.source for partition in plan.partitions] for plan in assignment] == [[hot], others]


def held(value: object) -> Iterator[ConnectionSettings]:
    """All in it, however deep."""
    if isinstance(value, ConnectionSettings):
        yield value
    elif is_dataclass(value):
        for each in fields(value):
            yield from held(getattr(value, each.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from held(item)


def test_all_connections_that_a_plan_brings_along_are_known() -> None:
    """Each may have a login of its own, which executors must be told in private."""
    own = {
        f"{client}.{key}": value
        for client in ("A.consumer", "A.producer", "B.producer", "B")
        for key, value in {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'PlainLoginModule required username="{client}" password="hush";',
        }.items()
    }
    for plan in plans(own):
        assert plan.connections == set(held(plan))
        assert len(plan.connections) == 4
    without = plans({"emit.offset-syncs.enabled": "false"})
    assert all(plan.connections == set(held(plan)) for plan in without)


def test_a_plan_keeps_the_facts_of_its_partitions() -> None:
    stamping = replace(PARTITIONS[0], target_stamps_append_time=True)
    (plan,) = task_plans(*flow({}), Announced(1, 0), [stamping], 1)
    assert plan.partitions == (stamping,)


def test_a_task_plan_holds_its_job_epoch_and_state_topics() -> None:
    for plan in plans():
        assert (plan.job_epoch, plan.announced_at) == (7, 1234)
        assert plan.state.positions_topic == "mm2-offsets.A.internal"
        assert plan.state.progress_topic == "mm2-progress.A.internal"
        assert plan.state.connection.bootstrap_servers == (("b", 9092),)


def test_every_task_has_clients_of_its_own() -> None:
    """Java's names since 3.5: `source->target|connector-task|role`."""
    consumers = [plan.consumer.connection.client_id for plan in plans()]
    assert consumers == [f"A->B|MirrorSourceConnector-{task}|replication-consumer" for task in range(4)]
    assert len({plan.producer.connection.client_id for plan in plans()}) == 4


def test_offset_syncs_go_to_the_configured_topic() -> None:
    for plan in plans({"B.offset.flush.interval.ms": "2500", "offset.lag.max": "7"}):
        syncs = plan.offset_syncs
        assert syncs is not None
        assert (syncs.topic, syncs.lag_max) == ("mm2-offset-syncs.B.internal", 7)
        assert syncs.flush_interval_s == 2.5
        assert syncs.connection.bootstrap_servers == (("a", 9092),)
    (plan, *_) = plans({"offset-syncs.topic.location": "target"})
    assert plan.offset_syncs is not None
    assert plan.offset_syncs.connection.bootstrap_servers == (("b", 9092),)


def test_without_offset_syncs_a_plan_has_none() -> None:
    """`emit.offset-syncs.enabled` (KIP-1031)."""
    assert {plan.offset_syncs for plan in plans({"emit.offset-syncs.enabled": "false"})} == {None}


def test_each_task_has_a_transactional_id_where_the_worker_uses_transactions() -> None:
    assert [plan.transaction for plan in plans(partitions=2)] == [None, None]
    transactional = {
        "B.exactly.once.source.support": "enabled",
        "A->B.transaction.boundary": "interval",
        "A->B.transaction.boundary.interval.ms": "700",
        "B.producer.transaction.timeout.ms": "9000",
    }
    assert [plan.transaction for plan in plans(transactional, partitions=2)] == [
        TransactionPlan(f"A-mm2-MirrorSourceConnector-{task}", 9.0, 0.7) for task in range(2)
    ]
