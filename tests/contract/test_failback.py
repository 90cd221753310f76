"""The old source of promoted topics follows the new original, is promoted itself, and the circle closes."""

import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.cli.commands.migrate.execution import choose_flow
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.clusters import LocalCluster
from sparkmirror.copy.copy_plan import StatePlan, TaskPlan
from sparkmirror.domain.client_settings import ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import UNKNOWN_LOGS, Alias, Flow, TopicPartition
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.migrate.migrations_log import MigrationsLog
from sparkmirror.migrate.promote.failback import Losses, TopicFailback
from sparkmirror.migrate.promote.failback_steps import FailbackRollback, TopicsFailback
from sparkmirror.migrate.promote.parted_logs import KEPT_FROM
from sparkmirror.migrate.promote.promotion import TopicPromotion, Wanted
from sparkmirror.migrate.run import Migration, MigrationResult, MigrationRun
from sparkmirror.migrate.steps import StepState
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.failbacks import Failback, failback_record
from sparkmirror.storage.positions import position_key
from sparkmirror.storage.progress_reader import ProgressReader
from sparkmirror.storage.promotions import read_promotions
from sparkmirror.verify.flow_partitions import flow_partitions
from sparkmirror.verify.range_comparison import verify_range
from sparkmirror.verify.range_planning import plan_ranges
from sparkmirror.verify.rules_and_result import Comparison
from tests.contract.copying import CONNECTOR, running
from tests.support.broker_data import (
    append,
    create_topic,
    delete_topic,
    end_offsets,
    ensure_compacted_topic,
    numbered,
    topics,
)
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
STILL_S: Final = 0.2
POSITIONS: Final = "failback.positions"
PROGRESS: Final = "failback.progress"
ATTEMPTS: Final = "failback.attempts"
"""Topics on both sides; other tests have theirs on one."""
OWNER: Final = owner_of(POSITIONS, CONNECTOR)
NOTHING_LOST: Final = Losses()
NEAR, FAR = Alias("near"), Alias("far")
PROPERTIES: Final = """\
clusters = near, far
near.bootstrap.servers = {near}
far.bootstrap.servers = {far}
near.offset.storage.topic = failback.positions
far.offset.storage.topic = failback.positions
name = ContractConnector
topics = {topic}
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
offsets.preserve = true
emit.checkpoints.enabled = false
near->far.enabled = true
far->near.enabled = true
"""

M = TypeVar("M", bound=Migration)
Placed = list[tuple[int, bytes | None]]
"""Offsets and values."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One topic on two clusters, and the flows between them."""

    clusters: dict[Alias, LocalCluster]
    topic: str
    file: Path

    def access(self, source: Alias) -> FlowAccess:
        return choose_flow(self.file, f"{source}->{other(source)}")

    def plan(self, source: Alias) -> TaskPlan:
        target = other(source)
        reading = connection(self.clusters[source], alias=source)
        writing = connection(self.clusters[target], alias=target)
        place = TopicPartition(self.topic, 0)
        return TaskPlan(
            flow=Flow(source, target),
            connector=CONNECTOR,
            task=0,
            job_epoch=1,
            announced_at=0,
            partitions=(CopyPartition(place, self.topic, preserves_offsets=True),),
            consumer=ConsumerSettings(reading),
            producer=ProducerSettings(writing),
            state=StatePlan(writing, POSITIONS, PROGRESS, ATTEMPTS),
            offset_syncs=None,
            names_show_origin=False,
        )

    def write(self, alias: Alias, count: int, first: int) -> None:
        append(self.clusters[alias], self.topic, numbered(count, first))

    def end(self, alias: Alias) -> int:
        return end_offsets(self.clusters[alias], [self.topic])[TopicPartition(self.topic, 0)]

    def values(self, alias: Alias, topic: str | None = None) -> Placed:
        with TopicReader(self.clusters[alias].bootstrap_servers, topic or self.topic) as reader:
            return [(record.offset() or 0, record.value()) for record in reader.read(0)]

    def copy(self, source: Alias) -> None:
        """Let the flow run until both sides have the same records at the same offsets."""
        with running(self.plan(source), fenced_pause_s=0.3):
            self.await_same()

    def await_same(self) -> None:
        await_value(
            lambda: self.values(NEAR) == self.values(FAR),
            WAIT_S,
            lambda: f"{self.values(NEAR)} and {self.values(FAR)}",
        )

    def await_refusal(self, source: Alias) -> None:
        """Wait until the flow has looked at both logs, and does not write."""
        key = CONNECTOR, TopicPartition(self.topic, 0)
        with closing(ProgressReader(connection(self.clusters[other(source)]), PROGRESS)) as reader:

            def is_refused() -> bool:
                report = reader.poll(0.05).get(key)
                return report is not None and "offsets can't be preserved" in str(report.error)

            await_value(is_refused, WAIT_S, lambda: "it is not refused")

    def verified(self, source: Alias) -> Comparison:
        """Compare as `sparkmirror verify` does."""
        name = f"{source}->{other(source)}"
        (flow,) = mirroring_flows(self.file, read_mirror_maker_file(self.file).flows, [name])
        contents = flow_partitions(*flow, None)
        (mirrored,) = (each for each in contents.mirrored if each.plan.source.topic == self.topic)
        return sum(map(verify_range, plan_ranges(contents.sides, [mirrored])), Comparison())

    def promote(self, source: Alias, **options: bool) -> None:
        wanted = Wanted(self.topic.__eq__, [self.topic])
        with closing(TopicPromotion(self.access(source), wanted, STILL_S, **options)) as promotion:
            assert run(lambda: [promotion.survey()], promotion.apply).failure is None

    def failback(self, source: Alias, losses: Losses = NOTHING_LOST) -> TopicFailback:
        """Make the failback of the promoted flow from `source`."""
        wanted = Wanted(self.topic.__eq__, [self.topic])
        return TopicFailback(self.access(source), self.access(other(source)), wanted, STILL_S, losses)

    def fail_back(self, source: Alias, losses: Losses = NOTHING_LOST) -> MigrationResult[TopicsFailback]:
        failback = self.failback(source, losses)
        return run(lambda: [failback.survey()], failback.apply)

    def roll_back(self, source: Alias) -> MigrationResult[FailbackRollback]:
        failback = self.failback(source)
        return run(lambda: [failback.survey_rollback()], failback.undo)


def other(alias: Alias) -> Alias:
    return FAR if alias == NEAR else NEAR


def run(survey: Callable[[], Sequence[M]], apply: Callable[[M], object]) -> MigrationResult[M]:
    (result,) = MigrationRun(
        survey=survey,
        apply=apply,  # type: ignore[arg-type]  # as the methods of both kinds
        report=lambda _: None,
        report_error=lambda _: None,
        sleep=lambda _: time.sleep(0.1),
    ).run(WAIT_S)
    return result


@pytest.fixture
def pair(
    cluster_pair: tuple[LocalCluster, LocalCluster], request: pytest.FixtureRequest, tmp_path: Path
) -> Pair:
    topic = "failback." + re.sub(r"\W+", "-", request.node.name)
    near, far = cluster_pair
    for cluster in cluster_pair:
        for name in (POSITIONS, PROGRESS, ATTEMPTS, PRODUCER_IDS_TOPIC):
            ensure_compacted_topic(cluster.bootstrap_servers, name)
        create_topic(cluster.bootstrap_servers, topic)
    file = tmp_path / "mm2.properties"
    text = PROPERTIES.format(near=near.bootstrap_servers, far=far.bootstrap_servers, topic=topic)
    file.write_text(text + "".join(f"{key} = {value}\n" for key, value in REPLICATION.items()))
    return Pair({NEAR: near, FAR: far}, topic, file)


def promoted(pair: Pair) -> None:
    """20 records are copied, and `far` has two of its own."""
    pair.write(NEAR, 20, 0)
    pair.copy(NEAR)
    pair.promote(NEAR)
    pair.write(FAR, 2, 20)


def test_a_whole_circle_keeps_offsets_equal(pair: Pair) -> None:
    promoted(pair)
    assert (pair.end(NEAR), pair.end(FAR)) == (20, 23), "the fence is at 20"
    assert pair.fail_back(NEAR).failure is None
    pair.copy(FAR)
    assert [offset for offset, _ in pair.values(NEAR)[20:]] == [21, 22], "a marker is at 20 on both sides"
    assert pair.verified(FAR) == Comparison(equal=22)
    pair.write(FAR, 3, 22)
    pair.copy(FAR)
    pair.promote(FAR)
    pair.write(NEAR, 4, 25)
    again = pair.fail_back(NEAR)
    assert again.failure is not None
    assert "is promoted by far->near since" in again.failure
    assert pair.fail_back(FAR).failure is None
    pair.copy(NEAR)
    pair.write(NEAR, 2, 29)
    pair.copy(NEAR)
    assert [value for _, value in pair.values(FAR)] == [value for _, value in numbered(31)]
    pair.promote(NEAR)  # and once more around
    pair.write(FAR, 2, 31)
    assert pair.fail_back(NEAR).failure is None
    pair.copy(FAR)
    assert [value for _, value in pair.values(NEAR)] == [value for _, value in numbered(33)]


def test_a_gap_at_the_parting_needs_no_record(pair: Pair) -> None:
    producer = confluent.Producer(
        {"bootstrap.servers": pair.clusters[NEAR].bootstrap_servers, "transactional.id": f"app-{pair.topic}"}
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for key, value in numbered(5):
        producer.produce(pair.topic, value, key, partition=0)
    producer.commit_transaction(WAIT_S)
    pair.copy(NEAR)
    pair.promote(NEAR)
    assert pair.end(NEAR) == 6
    pair.write(FAR, 2, 5)
    assert pair.fail_back(NEAR).failure is None
    pair.copy(FAR)
    assert len(pair.values(NEAR)) == 7


def test_a_rolled_back_failback_stops_the_flow_and_can_be_repeated(pair: Pair) -> None:
    promoted(pair)
    assert pair.fail_back(NEAR).failure is None
    pair.copy(FAR)
    assert pair.roll_back(NEAR).failure is None
    pair.write(FAR, 3, 22)
    before = pair.values(NEAR)
    with running(pair.plan(FAR), fenced_pause_s=0.3):
        result = pair.fail_back(NEAR)  # which compares what was copied in the meantime
        assert result.failure is None
        pair.await_same()
    assert pair.values(NEAR)[: len(before)] == before
    pair.promote(FAR)
    undone = pair.roll_back(NEAR)
    assert undone.failure is not None
    assert "far->near is promoted for" in undone.failure


def test_records_of_one_side_are_named_and_nothing_is_changed(pair: Pair) -> None:
    promoted(pair)
    pair.write(NEAR, 3, 100)
    result = pair.fail_back(NEAR)
    assert result.failure is not None
    assert "1 record there alone, 2 records in conflict" in result.failure
    assert "offsets 20 to 22" in result.failure
    assert "--delete" in result.failure
    assert pair.end(NEAR) == 23


def test_what_one_side_has_alone_is_kept_aside_before_its_topic_is_recreated(pair: Pair) -> None:
    promoted(pair)
    pair.write(NEAR, 3, 100)
    aside = f"aside.{pair.topic}"
    assert pair.fail_back(NEAR, Losses(deletes=True, aside=aside)).failure is None
    near = pair.clusters[NEAR]
    with TopicReader(near.bootstrap_servers, aside) as reader:
        kept = list(reader.read(0))
    assert [record.value() for record in kept] == [value for _, value in numbered(3, 100)]
    assert all(dict(record.headers() or [])[KEPT_FROM] for record in kept)
    await_value(lambda: pair.topic not in topics(near), WAIT_S, lambda: "it is not deleted")
    create_topic(near.bootstrap_servers, pair.topic)  # as the driver of far->near does
    pair.copy(FAR)
    assert [value for _, value in pair.values(NEAR)] == [value for _, value in numbered(22)]
    assert pair.verified(FAR) == Comparison(equal=22), "though 20 of them came from here"
    assert pair.fail_back(NEAR).failure is None, "done"


def test_an_interrupted_run_keeps_no_record_twice_and_deletes_the_topic_in_the_end(pair: Pair) -> None:
    """The run was killed while it kept records, and again before the topic was deleted."""
    promoted(pair)
    pair.write(NEAR, 3, 100)
    near, aside = pair.clusters[NEAR], f"aside.{pair.topic}"
    losses = Losses(deletes=True, aside=aside)
    failback = pair.failback(NEAR, losses)
    assert failback.apply(failback.survey()) == {}, "the records are kept, nothing else has happened"
    pair.write(NEAR, 2, 103)
    access = pair.access(FAR)
    (topic_id,) = read_metadata(access.target_admin, [pair.topic]).topic_ids.values()
    promotion = read_promotions(connection(pair.clusters[FAR]), NEAR, OWNER)[pair.topic]
    begun = Failback(promotion.at_ms, 1, UNKNOWN_LOGS, {}, deleted_id=topic_id)
    log = MigrationsLog(access.flow, access.target_admin, access.admin_plugins, 1)
    log.ensure()
    log.write([failback_record(OWNER, pair.topic, begun)])
    with running(pair.plan(FAR), fenced_pause_s=0.3):
        pair.await_refusal(FAR)
    assert pair.end(NEAR) == 25, "the flow writes nothing to the topic that is to be deleted"
    assert pair.fail_back(NEAR).failure is not None, "a repeated run must say that again"
    assert pair.fail_back(NEAR, losses).failure is None
    assert [value for _, value in pair.values(NEAR, aside)] == [value for _, value in numbered(5, 100)]
    await_value(lambda: pair.topic not in topics(near), WAIT_S, lambda: "it is not deleted")


def test_records_that_the_old_source_has_lost_come_back(pair: Pair) -> None:
    """The old source came up without a log: what it had written itself is copied to it, too."""
    promoted(pair)
    near = pair.clusters[NEAR]
    delete_topic(near, pair.topic)
    create_topic(near.bootstrap_servers, pair.topic)
    assert pair.fail_back(NEAR).failure is None
    pair.copy(FAR)
    assert len(pair.values(NEAR)) == 22


def test_without_a_promotion_the_parting_is_not_known(pair: Pair) -> None:
    pair.write(NEAR, 2, 0)
    (check, *others) = pair.failback(NEAR).survey().steps()
    assert check.state is StepState.IMPOSSIBLE
    assert "near->far has promoted no topic" in check.text
    assert "sparkmirror promote first" in check.text
    assert {step.state for step in others} <= {StepState.TO_DO, StepState.DONE, StepState.WAITING}


def test_the_wrong_direction_is_named(pair: Pair) -> None:
    promoted(pair)
    check = pair.failback(FAR).survey().steps()[0]
    assert check.text.endswith("but near->far has: name that flow")


def test_a_crash_behind_the_first_batch_is_resumed(pair: Pair) -> None:
    """There is no stored position by then: the record alone says what the log held before."""
    promoted(pair)
    assert pair.fail_back(NEAR).failure is None
    pair.copy(FAR)
    with closing(TopicWriter(connection(pair.clusters[NEAR]))) as writer:
        key = position_key(CONNECTOR, FAR, TopicPartition(pair.topic, 0))
        writer.write(POSITIONS, [LogRecord(key, None, partition=None)])
    pair.write(FAR, 1, 22)
    pair.copy(FAR)
    assert len(pair.values(NEAR)) == 23
