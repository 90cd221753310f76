"""A beginning that the target refuses is sent in another form, or is an error; other topics continue."""

from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.copy.copy_plan import StatePlan, TaskPlan
from sparkmirror.copy.preserve.preserved_start import Beginning, PreservedStarts
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter, read_topic
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.progress import PartitionProgress, PartitionState, parse
from sparkmirror.storage.promotions import Promotion, Stage, promotion_record
from tests.contract.copying import PROGRESS, WAIT_S, Bench, ProgressReports, remote, running
from tests.contract.test_preserved_offsets import await_same, ends, plan_of
from tests.memory.server import serving
from tests.memory.topic_configs import RECORDS_MAX
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import (
    Keyed,
    append,
    create_topic,
    delete_records,
    ensure_compacted_topic,
    keyed,
    numbered,
)
from tests.support.connections import connection
from tests.support.mirror import one_way
from tests.support.threaded_mirror import threaded_mirror
from tests.support.waiting import await_value


@pytest.mark.memory
def test_a_beginning_adapts_to_a_broker_that_limits_the_records_of_a_batch(memory_bench: Bench) -> None:
    plan, target = limited(memory_bench, "preserved.few-records", records_max=5000)
    assert PreservedStarts.of(plan).fill({target: Beginning(77, 0, 21_000)}) == {target: None}
    assert ends(memory_bench, "preserved.few-records")[1] == 21_000


@pytest.mark.memory
def test_a_broker_that_refuses_empty_records_is_said_with_topic_cost_and_setting(memory_bench: Bench) -> None:
    """And the rest of the flow continues."""
    plan, target = limited(memory_bench, "preserved.no-records", records_max=500)
    error = PreservedStarts.of(plan).fill({target: Beginning(77, 0, 100_000_000)})[target]
    assert str(error) == (
        f"{target}: its beginning up to offset 100000000 (100,000,000 offsets, 82.0 MB) can't be filled, "
        "since the target refuses batches of empty records: leave its topic out of offsets.preserve.topics "
        f"(produce to {target}: INVALID_RECORD (Too many records in a batch))"
    )
    other = "preserved.other-records"
    memory_bench.create(other)
    for topic in ("preserved.no-records", other):
        append(memory_bench.source, topic, numbered(1010))
        delete_records(memory_bench.source, topic, 1005)
    both = replace(plan, partitions=(*plan.partitions, *plan_of(memory_bench, other).partitions))
    with closing(ProgressReports(memory_bench)) as watch, running(both):
        await_same(memory_bench, other, 5)
        watch.await_progress(
            "preserved.no-records",
            lambda report: "(1,005 offsets, 0.0 MB) can't be filled" in str(report.error),
        )


def limited(bench: Bench, topic: str, *, records_max: int) -> tuple[TaskPlan, TopicPartition]:
    bench.create(topic, target_config={RECORDS_MAX: str(records_max)})
    return plan_of(bench, topic), TopicPartition(remote(topic), 0)


def test_a_broker_that_takes_no_record_is_named(bench: Bench) -> None:
    topic = "preserved.too-large"
    bench.create(topic, target_config={"max.message.bytes": "60"})
    target = TopicPartition(remote(topic), 0)
    error = PreservedStarts.of(plan_of(bench, topic)).fill({target: Beginning(77, 0, 100)})[target]
    assert "(100 offsets, 0.0 MB) can't be filled, since the target refuses batches" in str(error)
    assert "MESSAGE_TOO_LARGE" in str(error)


def test_a_log_whose_records_may_not_be_deleted_is_named(real_bench: Bench) -> None:
    topic = "preserved.compacted"
    real_bench.create(topic, target_config={"cleanup.policy": "compact"})
    target = TopicPartition(remote(topic), 0)
    error = PreservedStarts.of(plan_of(real_bench, topic)).fill({target: Beginning(77, 0, 100)})[target]
    assert "its log can't start at offset 100" in str(error)
    assert "add delete to its cleanup.policy there for the time being (" in str(error)


STRANGERS: Final = numbered(20, first=100)


def kept_name(bench: Bench, topic: str, records: int = 10) -> TaskPlan:
    """The topic is called alike on both clusters, and the target has records of somebody else."""
    for cluster in (bench.source, bench.target):
        create_topic(cluster.bootstrap_servers, topic)
    append(bench.source, topic, numbered(records))
    append(bench.target, topic, STRANGERS)
    plan = plan_of(bench, topic)
    return replace(plan, partitions=tuple(replace(each, target_topic=topic) for each in plan.partitions))


@pytest.mark.memory
def test_what_nobody_has_copied_from_the_target_is_no_original(memory_bench: Bench) -> None:
    plan = kept_name(memory_bench, topic := "preserved.stranger")
    with closing(ProgressReports(memory_bench)) as watch, running(plan):
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.FAILED)
    assert "elete" not in str(report.error)
    assert "failback" in str(report.error)
    assert keyed(memory_bench.target, topic) == STRANGERS


@pytest.mark.memory
def test_an_original_is_never_to_be_deleted_and_its_direction_stands_by(memory_bench: Bench) -> None:
    """The file of a pair has both directions from the beginning."""
    plan = kept_name(memory_bench, topic := "preserved.original", records=0)
    with closing(ProgressReports(memory_bench)) as watch, running(plan):
        watch.await_progress(topic, lambda report: report.state is PartitionState.RETRYING)
        with running(opposite(memory_bench, plan)):
            report = watch.await_progress(topic, lambda report: report.state is PartitionState.STANDBY)
    assert "elete" not in str(report.error)
    assert "failback" in str(report.error)
    assert keyed(memory_bench.source, topic) == keyed(memory_bench.target, topic) == STRANGERS


@pytest.mark.memory
def test_a_direction_of_a_pair_waits_for_the_first_position_that_the_opposite_flow_reports(
    memory_bench: Bench,
) -> None:
    """Both directions start at once, and the copy is there before it is reported."""
    plan = of_pair(kept_name(memory_bench, topic := "preserved.unreported", records=0))
    back = opposite(memory_bench, plan)
    elsewhere = "preserved.unreported.progress"
    ensure_compacted_topic(memory_bench.source.bootstrap_servers, elsewhere)
    with running(replace(back, state=replace(back.state, progress_topic=elsewhere))):
        await_records(memory_bench.source, topic, STRANGERS)
    with closing(ProgressReports(memory_bench)) as watch, running(plan):
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.RETRYING)
        assert str(report.error).startswith("offsets can't be preserved yet: preserved.unreported-0: ")
        assert str(report.error).endswith(
            "; it waits for the first position that far->near reports, which may have copied it"
        )
        with running(back):
            watch.await_progress(topic, lambda report: report.state is PartitionState.STANDBY)
    assert PartitionState.FAILED not in states(memory_bench.target, topic)
    with closing(ProgressReports(memory_bench)) as watch, running(replace(plan, attempt=1)):
        watch.await_progress(
            topic, lambda report: report.attempt == 1 and report.state is PartitionState.STANDBY
        )
    assert PartitionState.FAILED not in states(memory_bench.target, topic), "after a restart, too"


@pytest.mark.memory
@pytest.mark.parametrize("ends", ["refuses", "promoted"])
def test_a_direction_of_a_pair_fails_when_the_opposite_flow_can_not_copy_it(
    memory_bench: Bench, ends: str
) -> None:
    """Both clusters have records of their own; or the opposite flow has been ended for the topic."""
    plan = of_pair(kept_name(memory_bench, topic := f"preserved.both-{ends}"))
    back = opposite(memory_bench, plan)
    with ExitStack() as stack:
        watch = stack.enter_context(closing(ProgressReports(memory_bench)))
        stack.enter_context(running(plan))
        watch.await_progress(topic, lambda report: report.state is PartitionState.RETRYING)
        if ends == "refuses":
            stack.enter_context(running(back))
        else:
            promote(back, memory_bench.source)
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.FAILED)
    assert "failback" in str(report.error)
    assert keyed(memory_bench.target, topic) == STRANGERS


@pytest.mark.memory
def test_both_directions_of_a_file_start_without_an_error() -> None:
    with serving("id of A") as here, serving("id of B") as there:
        create_topic(here.bootstrap_servers, topic := "orders")
        append(here, topic, numbered(100))
        more = {
            "B->A_enabled": "true",
            "B->A_topics": topic,
            "replication_policy_class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "offsets_preserve": "true",
            "refresh_topics_interval_seconds": "1",
        }
        with threaded_mirror(one_way(here, there, topic, **more), ("A", "B")):
            back = StateTopic.PROGRESS.of(Alias("B"))
            await_value(
                lambda: PartitionState.STANDBY in states(here, topic, back), WAIT_S, lambda: "not standby"
            )
        assert PartitionState.FAILED not in states(here, topic, back)
        assert keyed(here, topic) == keyed(there, topic) == numbered(100)


def of_pair(plan: TaskPlan) -> TaskPlan:
    """The plan as a file with both directions gives it."""
    return replace(plan, partitions=tuple(replace(each, is_copied_back=True) for each in plan.partitions))


def promote(plan: TaskPlan, target: AnyCluster) -> None:
    migrations = StateTopic.MIGRATIONS.of(plan.flow.source)
    ensure_compacted_topic(target.bootstrap_servers, migrations)
    owner, topic = owner_of(plan.state.positions_topic, plan.connector), plan.partitions[0].source.topic
    with closing(TopicWriter(plan.state.connection)) as writer:
        writer.write(migrations, [promotion_record(owner, topic, Promotion(Stage.PROMOTED, 0, b"", {}))])


def await_records(cluster: AnyCluster, topic: str, expected: Sequence[Keyed]) -> None:
    await_value(
        lambda: keyed(cluster, topic) == expected, WAIT_S, lambda: f"{keyed(cluster, topic)} of {expected}"
    )


def states(target: AnyCluster, topic: str, progress: str = PROGRESS) -> set[PartitionState]:
    """All states that were reported, not only the last."""
    with suppress(KafkaError):  # the mirror has not created it yet
        reports = list(map(parse, read_topic(connection(target), progress)))
        return {it.state for it in reports if isinstance(it, PartitionProgress) and it.source.topic == topic}
    return set()


def opposite(bench: Bench, plan: TaskPlan) -> TaskPlan:
    """The plan of the flow that goes back, with state topics of its own."""
    back = Bench(bench.target, bench.source)
    there = plan.flow.target
    topics = {each: each.of(there) for each in (StateTopic.PROGRESS, StateTopic.ATTEMPTS)}
    for name in ("positions.back", *topics.values()):
        ensure_compacted_topic(back.target.bootstrap_servers, name)
    made = plan_of(back, plan.partitions[0].source.topic)
    return replace(
        made,
        flow=Flow(there, plan.flow.source),
        partitions=plan.partitions,
        state=StatePlan(
            made.state.connection,
            "positions.back",
            topics[StateTopic.PROGRESS],
            topics[StateTopic.ATTEMPTS],
        ),
        offset_syncs=None,
    )


@pytest.mark.memory
def test_an_original_whose_copy_is_not_begun_asks_nobody_to_act(memory_bench: Bench) -> None:
    """The opposite flow of the pair has created the topic, and is about to copy into it."""
    topic = "preserved.original-not-begun"
    plan = kept_name(memory_bench, topic, records=0)
    with closing(ProgressReports(memory_bench)) as watch, running(plan):
        report = watch.await_progress(topic, lambda report: report.state is PartitionState.RETRYING)
        assert f"{topic}-0 holds no record" in str(report.error)
        append(memory_bench.source, topic, numbered(10))
        watch.await_progress(topic, lambda report: report.state is PartitionState.FAILED)
    assert keyed(memory_bench.target, topic) == STRANGERS
