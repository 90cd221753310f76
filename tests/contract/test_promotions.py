"""Copies with preserved offsets become the originals: nothing of the flow is written there any more."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.filler import filler_batch
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.cli.commands.migrate.execution import choose_flow
from sparkmirror.cli.main import main
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import FencedError, KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.single_batches import produce_batches
from sparkmirror.kafka.transactions.fencing import Claim, Fencing
from sparkmirror.kafka.wire.error_codes import INVALID_PRODUCER_EPOCH
from sparkmirror.migrate.migrations_log import MigrationsLog
from sparkmirror.migrate.promote.promotion import TopicPromotion, Wanted
from sparkmirror.migrate.promote.promotion_steps import PromotionRollback, TopicsPromotion
from sparkmirror.migrate.run import MigrationResult, MigrationRun
from sparkmirror.migrate.steps import StepState
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.storage.attempts import fencing_id, owner_of
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.promotions import (
    Parting,
    Promotion,
    Stage,
    promotion_record,
    read_promotions,
)
from sparkmirror.verify.flow_partitions import flow_partitions
from tests.contract.copying import (
    CONNECTOR,
    POSITIONS,
    SOURCE,
    Bench,
    ProgressReports,
    remote,
    running,
)
from tests.support.broker_data import append, end_offsets, numbered
from tests.support.broker_requests import stored_batches
from tests.support.mirror import REPLICATION
from tests.support.topic_reader import TopicReader
from tests.support.traffic import flowing
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
STILL_S: Final = 0.2
OWNER: Final = owner_of(POSITIONS, CONNECTOR)
PROPERTIES: Final = """\
clusters = near, far
near.bootstrap.servers = {source}
far.bootstrap.servers = {target}
far.offset.storage.topic = {positions}
near->far.enabled = true
near->far.name = ContractConnector
near->far.topics = {topic}
near->far.heartbeats.replication.enabled = false
near->far.offsets.preserve = true
near->far.emit.checkpoints.enabled = false
near->far.consumer.isolation.level = read_committed
"""


@pytest.fixture(scope="session")
def bench(real_bench: Bench) -> Bench:
    return real_bench


@pytest.fixture(scope="session")
def watch(bench: Bench) -> Iterator[ProgressReports]:
    """Watch this file's bench: pytest would keep the shared one for files whose `bench` is another."""
    made = ProgressReports(bench)
    yield made
    made.close()


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    name = "promoted." + re.sub(r"\W+", "-", request.node.name)
    bench.create(name)
    return name


@pytest.fixture
def access(bench: Bench, topic: str, tmp_path: Path) -> FlowAccess:
    return access_to(bench, topic, tmp_path, bench.source.bootstrap_servers)


def access_to(bench: Bench, topic: str, folder: Path, source: str) -> FlowAccess:
    file = folder / "mm2.properties"
    text = PROPERTIES.format(
        source=source, target=bench.target.bootstrap_servers, topic=topic, positions=POSITIONS
    )
    file.write_text(text + "".join(f"{key} = {value}\n" for key, value in REPLICATION.items()))
    return choose_flow(file, None)


def plan_of(bench: Bench, topic: str) -> TaskPlan:
    plan = bench.plan(TopicPartition(topic, 0), read_committed=True)
    return replace(plan, partitions=tuple(replace(each, preserves_offsets=True) for each in plan.partitions))


def promotion_of(access: FlowAccess, topic: str, **options: bool) -> TopicPromotion:
    return TopicPromotion(access, Wanted(topic.__eq__, [topic]), STILL_S, **options)


def promote(
    access: FlowAccess, topic: str, *, timeout_s: float = WAIT_S, **options: bool
) -> MigrationResult[TopicsPromotion]:
    with closing(promotion_of(access, topic, **options)) as promotion:
        (result,) = MigrationRun(
            survey=lambda: [promotion.survey()],
            apply=promotion.apply,
            report=lambda _: None,
            report_error=lambda _: None,
            sleep=lambda _: time.sleep(0.1),
        ).run(timeout_s)
    return result


def roll_back(access: FlowAccess, topic: str) -> MigrationResult[PromotionRollback]:
    with closing(promotion_of(access, topic)) as promotion:
        (result,) = MigrationRun(
            survey=lambda: [promotion.survey_rollback()],
            apply=promotion.undo,
            report=lambda _: None,
            report_error=lambda _: None,
            sleep=lambda _: None,
        ).run(WAIT_S)
    return result


def ends(bench: Bench, topic: str) -> tuple[int, int]:
    source = end_offsets(bench.source, [topic])[TopicPartition(topic, 0)]
    return source, end_offsets(bench.target, [remote(topic)])[TopicPartition(remote(topic), 0)]


def values(bench: Bench, topic: str) -> list[tuple[int, bytes | None]]:
    with TopicReader(bench.target.bootstrap_servers, remote(topic)) as reader:
        return [(record.offset() or 0, record.value()) for record in reader.read(0)]


def placed(count: int, first: int = 0) -> list[tuple[int, bytes | None]]:
    return [(first + at, value) for at, (_, value) in enumerate(numbered(count, first))]


def await_copied(bench: Bench, topic: str, count: int) -> None:
    await_value(lambda: len(values(bench, topic)) == count, WAIT_S, lambda: str(values(bench, topic)))


def record(access: FlowAccess, topic: str, stage: Stage) -> None:
    log = MigrationsLog(access.flow, access.target_admin, access.admin_plugins, 1)
    log.ensure()
    log.write([promotion_record(OWNER, topic, Promotion(stage, 1, b"", {}))])


def recorded(access: FlowAccess, topic: str) -> Promotion | None:
    return read_promotions(access.positions, SOURCE, OWNER).get(topic)


def transact(bench: Bench, topic: str, count: int, first: int = 0) -> None:
    settings = {"bootstrap.servers": bench.source.bootstrap_servers, "transactional.id": f"app-{topic}"}
    producer = confluent.Producer(settings)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for key, value in numbered(count, first):
        producer.produce(topic, value, key, partition=0)
    producer.commit_transaction(WAIT_S)


def abort(producer: confluent.Producer, topic: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    producer.flush(WAIT_S)
    producer.abort_transaction(WAIT_S)


def is_refused(report: PartitionProgress) -> bool:
    """The flow's task knows of the promotion, and needs no person."""
    return report.state is PartitionState.RETRYING and "is promoted" in str(report.error)


def test_a_promoted_topic_gets_nothing_of_the_flow_any_more(
    bench: Bench, topic: str, access: FlowAccess, watch: ProgressReports
) -> None:
    append(bench.source, topic, numbered(20))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 20)
        result = promote(access, topic)
        assert result.failure is None
        assert ends(bench, topic) == (20, 21), "the fence takes an offset"
        append(bench.source, topic, numbered(3, 100))
        watch.await_progress(topic, is_refused)
        append(bench.target, remote(topic), numbered(5, 20))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):  # nor does the next attempt write
        watch.await_progress(topic, is_refused)
    assert values(bench, topic) == placed(20) + [(offset + 1, value) for offset, value in placed(5, 20)]
    found = recorded(access, topic)
    assert found is not None
    assert (found.stage, found.partings) == (Stage.PROMOTED, {0: Parting(20, 20)})
    again = promote(access, topic)
    assert again.failure is None
    verify = next(step for step in again.found.steps() if step.name == "verify")
    assert f"these have more on near, which is not on far: {topic}-0 (3 offsets)" in verify.text
    assert verify.is_partial
    assert ends(bench, topic)[1] == 26, "nothing is fenced again"


def test_a_promoted_topic_has_no_lag_and_is_not_compared(
    bench: Bench, topic: str, access: FlowAccess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(bench.source, topic, numbered(20))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 20)
        assert promote(access, topic).failure is None
    append(bench.source, topic, numbered(3, 100))
    append(bench.target, remote(topic), numbered(5, 20))
    file = tmp_path / "mm2.properties"
    lag = ["lag", str(file), "--topic", topic]
    assert main(lag) == 0
    text = "near->far: nothing is left to copy\n" + f"  {topic}: promoted, parted at offset 20\n"
    assert capsys.readouterr().out == text
    assert main([*lag, "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["records"], found["partitions"]) == (0, [])
    assert found["promoted"] == {topic: {"state": "promoted", "partings": {"0": 20}}}
    main(["status", str(file)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["near->far", topic, "1", "-", *["promoted,", "parted", "at", "offset", "20"]] in rows
    (flow,) = mirroring_flows(file, read_mirror_maker_file(file).flows)
    contents = flow_partitions(*flow, None)
    assert not contents.mirrored
    assert [(each.plan.source.topic, each.why) for each in contents.promoted] == [
        (topic, "promoted, parted at offset 20")
    ]


def test_a_gap_at_the_end_is_filled_and_is_the_fence(
    bench: Bench, topic: str, access: FlowAccess, watch: ProgressReports
) -> None:
    transact(bench, topic, 4)
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 4)
    transact(bench, topic, 3, 5)
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 7)
        await_value(lambda: len(set(ends(bench, topic))) == 1, WAIT_S, lambda: str(ends(bench, topic)))
    producer = confluent.Producer(
        {"bootstrap.servers": bench.source.bootstrap_servers, "transactional.id": f"app-{topic}"}
    )
    producer.init_transactions(WAIT_S)
    abort(producer, topic)
    end = ends(bench, topic)[0]
    assert ends(bench, topic)[1] == end - 2, "the mirror does not run"
    assert promote(access, topic).failure is None
    assert ends(bench, topic) == (end, end)
    abort(producer, topic)
    assert ends(bench, topic) == (end + 2, end)
    verify = promote(access, topic).found.steps()[-1]
    assert (verify.text, verify.is_partial) == ("1 of 1 partition have all that near has", False)
    with running(plan_of(bench, topic)):
        watch.await_progress(topic, is_refused)
    append(bench.target, remote(topic), [(None, b"first of the new original")])
    assert values(bench, topic)[-1] == (end, b"first of the new original")


def test_what_was_on_its_way_is_refused_by_the_leader(bench: Bench, topic: str, access: FlowAccess) -> None:
    """By the epoch of the log's last data, and by that which the last attempt has claimed."""
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 5)
    last = stored_batches(bench.target, remote(topic))[-1].header
    own_id = fencing_id(OWNER, SOURCE, TopicPartition(topic, 0))
    with closing(Fencing(access.producer)) as fencing:
        claimed = fencing.claim([own_id])[own_id]
        assert isinstance(claimed, ProducerId)
        assert promote(access, topic).failure is None
        marked = fencing.mark({own_id: Claim(claimed, TopicPartition(remote(topic), 0))})
    assert isinstance(marked[own_id], FencedError)
    stale = ProducerId(last.producer_id, last.producer_epoch)
    batch = filler_batch(last.last_offset + 1, 1, stale, keyed=False)
    assert batch.data is not None
    place = TopicPartition(remote(topic), 0)
    with closing(Cluster(access.producer)) as cluster:
        result = produce_batches(cluster, ProducerSettings(access.producer), {place: batch.data})[place]
    assert isinstance(result, KafkaError)
    assert result.code == INVALID_PRODUCER_EPOCH
    log = stored_batches(bench.target, remote(topic))
    assert [bool(batch.header.attributes & CONTROL) for batch in log][-1]
    assert log[-1].header.producer_id == last.producer_id == claimed.id
    assert log[-1].header.producer_epoch > claimed.epoch > last.producer_epoch


def test_with_stop_at_now_nobody_needs_to_be_quiet(bench: Bench, topic: str, access: FlowAccess) -> None:
    with running(plan_of(bench, topic)), flowing(bench.source, topic, rate=500):
        await_value(lambda: len(values(bench, topic)) > 50, WAIT_S, lambda: str(len(values(bench, topic))))
        before = ends(bench, topic)[0]
        result = promote(access, topic, stops_at_now=True)
        assert result.failure is None
    found = recorded(access, topic)
    assert found is not None
    parted = found.partings[0].offset
    assert parted >= before
    seen = values(bench, topic)
    with TopicReader(bench.source.bootstrap_servers, topic) as reader:
        source = [(each.offset() or 0, each.value()) for each in reader.read(0)]
    assert seen == source[:parted], "a prefix of the source, all of it at its offsets"
    assert len(source) > parted


def test_where_the_source_is_gone_what_was_copied_is_promoted(
    bench: Bench, topic: str, tmp_path: Path, watch: ProgressReports
) -> None:
    """The source is gone for the command only: the mirror still reaches it."""
    access = access_to(bench, topic, tmp_path, "127.0.0.1:1")
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 5)
        watch.await_progress(topic, lambda report: report.position == 4)
        result = promote(access, topic, is_source_gone=True)
        assert result.failure is None
        append(bench.source, topic, numbered(3, 100))
        watch.await_progress(topic, is_refused)
    found = recorded(access, topic)
    assert found is not None
    assert (found.stage, found.partings) == (Stage.PROMOTED, {0: Parting(5, None)})
    assert values(bench, topic) == placed(5)


def test_a_stopped_topic_can_be_copied_again(
    bench: Bench, topic: str, access: FlowAccess, watch: ProgressReports
) -> None:
    """The command was killed before the switch."""
    append(bench.source, topic, numbered(5))
    record(access, topic, Stage.STOPPING)
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        watch.await_progress(topic, is_refused)
        result = promote(access, topic, timeout_s=0.5)
        assert result.failure is not None
        assert (
            f"after the flow was stopped for them, records were written to {topic} on near" in result.failure
        )
        assert roll_back(access, topic).failure is None
        assert recorded(access, topic) is None
        await_copied(bench, topic, 5)
    assert values(bench, topic) == placed(5)


def leave_fence(access: FlowAccess, topic: str) -> None:
    """Write a fence as a switch does that is killed before it has recorded where the logs part."""
    record(access, topic, Stage.SWITCHING)
    own_id = fencing_id(OWNER, SOURCE, TopicPartition(topic, 0))
    with closing(Fencing(access.producer)) as fencing:
        claimed = fencing.claim([own_id])[own_id]
        assert isinstance(claimed, ProducerId)
        assert fencing.mark({own_id: Claim(claimed, TopicPartition(remote(topic), 0))}) == {own_id: None}


def test_an_interrupted_switch_is_continued_and_not_undone(
    bench: Bench, topic: str, access: FlowAccess
) -> None:
    """The command was killed after it had written a fence."""
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 5)
    leave_fence(access, topic)
    await_value(lambda: ends(bench, topic) == (5, 6), WAIT_S, lambda: str(ends(bench, topic)))
    undone = roll_back(access, topic)
    assert undone.failure is not None
    assert "can't be copied again: the flow is fenced there" in undone.failure
    assert promote(access, topic).failure is None
    found = recorded(access, topic)
    assert found is not None
    assert (found.stage, found.partings) == (Stage.PROMOTED, {0: Parting(5, 5)})
    assert ends(bench, topic) == (5, 7), "fenced once more"
    assert values(bench, topic) == placed(5)


@pytest.mark.parametrize("fences", [1, 2])
@pytest.mark.parametrize("kind", ["records", "a transaction", "records and a transaction"])
def test_records_in_the_places_of_an_interrupted_switchs_fence_are_not_on_the_target(
    bench: Bench, topic: str, access: FlowAccess, kind: str, fences: int
) -> None:
    """The source has them where the target has control markers."""
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 5)
    for _ in range(fences):
        leave_fence(access, topic)
    await_value(lambda: ends(bench, topic) == (5, 5 + fences), WAIT_S, lambda: str(ends(bench, topic)))
    if "records" in kind:
        append(bench.source, topic, numbered(1, 5))
    if "transaction" in kind:
        transact(bench, topic, 1, 6)
    assert promote(access, topic, stops_at_now=True).failure is None
    found = recorded(access, topic)
    assert found is not None
    assert found.partings == {0: Parting(5, ends(bench, topic)[0])}
    assert values(bench, topic) == placed(5)


def test_a_gap_of_the_source_before_the_switch_counts_as_copied(
    bench: Bench, topic: str, access: FlowAccess
) -> None:
    """The logs part behind control markers that stand for the source's own."""
    transact(bench, topic, 5)
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_value(lambda: ends(bench, topic) == (6, 6), WAIT_S, lambda: str(ends(bench, topic)))
    leave_fence(access, topic)
    await_value(lambda: ends(bench, topic) == (6, 7), WAIT_S, lambda: str(ends(bench, topic)))
    append(bench.source, topic, numbered(3, 5))
    assert promote(access, topic, stops_at_now=True).failure is None
    found = recorded(access, topic)
    assert found is not None
    assert found.partings == {0: Parting(6, 9)}


def test_records_of_others_behind_the_end_are_in_the_way(
    bench: Bench, topic: str, access: FlowAccess
) -> None:
    append(bench.source, topic, numbered(5))
    with running(plan_of(bench, topic), fenced_pause_s=0.3):
        await_copied(bench, topic, 5)
    append(bench.target, remote(topic), [(None, b"foreign")])
    result = promote(access, topic)
    assert result.failure is not None
    assert "records behind the end that they have on near, of others" in result.failure
    assert recorded(access, topic) is None


def test_a_plan_changes_nothing_and_names_what_is_in_the_way(
    bench: Bench, topic: str, access: FlowAccess
) -> None:
    append(bench.source, topic, numbered(5))
    before = ends(bench, topic)
    with closing(promotion_of(access, topic)) as promotion:
        steps = {step.name: step for step in promotion.survey().steps()}
    assert steps["drain"].state is StepState.WAITING
    assert "5 more records" in steps["drain"].text
    assert steps["switch"].state is StepState.TO_DO
    assert ends(bench, topic) == before
    assert recorded(access, topic) is None
    with closing(TopicPromotion(access, Wanted("none".__eq__, ["none"]), STILL_S)) as promotion:
        (check, *_) = promotion.survey().steps()
    assert check.state is StepState.IMPOSSIBLE
    assert "no topic that near->far mirrors has a name like none on near" in check.text
