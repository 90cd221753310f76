"""Partitions start whose attempts can't be recorded, on clusters in memory, in virtual time."""

import random
from dataclasses import replace

import pytest

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerState
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.partition_events import ResumeReason, Start
from sparkmirror.copy.resumption import Resumption
from sparkmirror.copy.state_writer import StateWriter
from sparkmirror.domain.client_settings import OffsetReset, StartTime
from sparkmirror.domain.errors import KafkaError, RetriableError, SparkmirrorError
from sparkmirror.domain.incidents import IncidentKind, OnDataLoss, OnTopicRecreated, Reactions
from sparkmirror.settings.copy_partition import FormerTarget
from sparkmirror.settings.source import CopySettings
from sparkmirror.storage.dead_letters import DeadLetter
from sparkmirror.storage.positions import Position
from tests.memory.client_run import OneFault
from tests.memory.network import Fate
from tests.memory.stage import REMOTE, TOPIC, Shape, Stage
from tests.unit.copy.copied_records import (
    PRODUCER,
    SOURCE,
    TARGET,
    copy_batches_of,
    logs_of,
    position_after,
    write_foreign,
)

INIT_PRODUCER_ID = 22


def stage_of(**shape: object) -> Stage:
    """A source with batches of 2, 3, 1 and 4 records."""
    stage = Stage(random.Random(1), Shape(partitions=1, **shape))  # type: ignore[arg-type] # its fields
    for count in (2, 3, 1, 4):
        stage.write(0, count)
    return stage


@pytest.fixture
def stage() -> Stage:
    return stage_of()


def resume(stage: Stage, reason: ResumeReason, plan: TaskPlan | None = None) -> Start | SparkmirrorError:
    plan = plan or stage.plan()
    resumption = Resumption.of(plan, CycleDetection(plan), StateWriter(plan).store, None)
    return resumption.starts({SOURCE: reason})[SOURCE]


def started(result: Start | SparkmirrorError) -> Start:
    assert isinstance(result, Start), result
    return result


def incident_of(result: Start | SparkmirrorError) -> IncidentKind:
    """The incident beside the one that nothing is fenced here."""
    other, unfenced = started(result).incidents
    assert unfenced.kind is IncidentKind.UNFENCED
    return other.kind


def stored(stage: Stage) -> Position | None:
    state = StateWriter(stage.plan())
    return state.read_positions().get(SOURCE)


def reacting(stage: Stage, on_data_loss: OnDataLoss, on_recreated: OnTopicRecreated) -> TaskPlan:
    return replace(stage.plan(), settings=CopySettings(Reactions(on_data_loss, on_recreated)))


def test_a_partition_without_position_starts_at_the_first_offset_under_a_new_producer_id(
    stage: Stage,
) -> None:
    stage.source.log(SOURCE).delete_before(2)
    write_foreign(stage, 3)
    start = started(resume(stage, ResumeReason()))
    assert (start.position, start.producer.next_sequence, start.producer.next_offset) == (2, 0, 3)
    known = stored(stage)
    assert known is not None
    assert (known.offset, known.producer) == (1, start.producer)


def test_auto_offset_reset_latest_starts_at_the_end(stage: Stage) -> None:
    plan = stage.plan()
    latest = replace(plan, consumer=replace(plan.consumer, offset_reset=OffsetReset.LATEST))
    assert started(resume(stage, ResumeReason(), latest)).position == 10


def latest_plan(stage: Stage, **partition: object) -> TaskPlan:
    plan = stage.plan()
    partitions = tuple(replace(each, **partition) for each in plan.partitions)  # type: ignore[arg-type]
    latest = replace(plan.consumer, offset_reset=OffsetReset.LATEST)
    return replace(plan, consumer=latest, partitions=partitions)


def test_a_new_partition_starts_at_its_first_record_whatever_auto_offset_reset_is(stage: Stage) -> None:
    stage.source.log(SOURCE).delete_before(2)
    assert started(resume(stage, ResumeReason(), latest_plan(stage, is_new=True))).position == 2


@pytest.mark.parametrize(("kept_from", "lost"), [(3, 1), (5, 3), (10, 8)])
def test_latest_jumps_over_no_record_that_retention_has_left(stage: Stage, kept_from: int, lost: int) -> None:
    copy_batches_of(stage, 1)
    stage.source.log(SOURCE).delete_before(kept_from)
    start = started(resume(stage, ResumeReason(position_after(stage, 2), is_gone=True), latest_plan(stage)))
    assert (start.position, incident_of(start)) == (kept_from, IncidentKind.RECORDS_LOST)
    assert start.incidents[0].records == lost


@pytest.mark.parametrize("kept_from", [0, 5])
def test_a_start_time_begins_at_the_first_record_since_or_at_the_end(stage: Stage, kept_from: int) -> None:
    stage.source.log(SOURCE).delete_before(kept_from)
    plan = stage.plan()

    def since(at_ms: int, **partition: object) -> int:
        reset = replace(plan.consumer, offset_reset=OffsetReset.TIME, start_time=StartTime(at_ms))
        partitions = tuple(replace(each, **partition) for each in plan.partitions)  # type: ignore[arg-type]
        found = resume(stage, ResumeReason(), replace(plan, consumer=reset, partitions=partitions))
        return started(found).position

    assert since(0) == kept_from
    assert since(2**60) == 10
    assert since(2**60, is_new=True) == kept_from


def test_latest_goes_to_the_end_of_a_log_that_ends_before_the_position(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    start = resume(stage, ResumeReason(position_after(stage, 14), is_gone=True), latest_plan(stage))
    assert (started(start).position, incident_of(start)) == (10, IncidentKind.SOURCE_TRUNCATED)


@pytest.mark.parametrize("policy", [OnTopicRecreated.RECORD, OnTopicRecreated.RESTART])
def test_latest_leaves_out_nothing_of_recreated_topics(stage: Stage, policy: OnTopicRecreated) -> None:
    copy_batches_of(stage, 2)
    plan = replace(latest_plan(stage), settings=CopySettings(Reactions(OnDataLoss.RECORD, policy)))
    before = position_after(stage, 5)
    stage.replace_topic(stage.target, REMOTE)
    assert started(resume(stage, ResumeReason(before), plan)).position == 5
    stage.replace_topic(stage.source, TOPIC)
    stage.write(0, 3)
    assert started(resume(stage, ResumeReason(before), plan)).position == 0


def test_auto_offset_reset_none_without_position_is_an_error(stage: Stage) -> None:
    plan = stage.plan()
    none = replace(plan, consumer=replace(plan.consumer, offset_reset=OffsetReset.NONE))
    assert isinstance(resume(stage, ResumeReason(), none), KafkaError)
    assert stored(stage) is None


@pytest.mark.parametrize("is_distrusted", [False, True])
def test_a_stored_position_is_continued_under_a_new_producer_id(stage: Stage, *, is_distrusted: bool) -> None:
    """Records behind it are copied again, and the incident says what is missing."""
    copy_batches_of(stage, 3)
    position = position_after(stage, 2)
    start = started(resume(stage, ResumeReason(position, is_distrusted=is_distrusted)))
    assert (start.position, start.producer.next_sequence, start.producer.next_offset) == (2, 0, 6)
    assert start.producer.producer.id != PRODUCER.id
    known = stored(stage)
    assert known is not None
    assert (known.offset, known.producer) == (1, start.producer)
    (incident,) = start.incidents
    assert incident.kind is IncidentKind.UNFENCED
    assert "mm2-attempts.near.internal does not exist" in incident.text
    assert "--operation Create --topic mm2-attempts.near.internal" in incident.text


def test_an_attempt_without_unanswered_batches_continues_under_its_sequence(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    settled = ResumeReason(position_after(stage, 2), is_settled=True)
    start = started(resume(stage, settled))
    assert (start.position, start.producer, start.incidents) == (2, ProducerState(PRODUCER, 2, 2), ())


def test_a_batch_that_was_skipped_hides_no_truncated_target(stage: Stage) -> None:
    copy_batches_of(stage, 2)
    stage.target.log(TARGET).truncate(2, stage.target.now_ms())
    skipped = DeadLetter(SOURCE, 5, 5, "too large", 0.0)
    start = started(resume(stage, ResumeReason(position_after(stage, 6), skipped=skipped)))
    assert [it.kind for it in start.incidents] == [
        IncidentKind.BATCH_SKIPPED,
        IncidentKind.TARGET_TRUNCATED,
        IncidentKind.UNFENCED,
    ]


def test_a_truncated_target_is_an_incident(stage: Stage) -> None:
    copy_batches_of(stage, 2)
    stage.target.log(TARGET).truncate(2, stage.target.now_ms())
    start = resume(stage, ResumeReason(position_after(stage, 5)))
    assert incident_of(start) is IncidentKind.TARGET_TRUNCATED
    assert (started(start).position, started(start).producer.next_offset) == (5, 2)


def test_a_position_that_the_source_lost_is_continued_behind_the_gap(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    stage.source.log(SOURCE).delete_before(5)
    start = resume(stage, ResumeReason(position_after(stage, 2), is_gone=True))
    assert incident_of(start) is IncidentKind.RECORDS_LOST
    assert started(start).position == 5
    assert started(start).producer.producer.id != PRODUCER.id


def test_a_position_that_the_source_lost_is_an_error_when_data_loss_must_fail(stage: Stage) -> None:
    copy_batches_of(stage, 1)
    stage.source.log(SOURCE).delete_before(5)
    plan = reacting(stage, OnDataLoss.FAIL, OnTopicRecreated.RECORD)
    failed = resume(stage, ResumeReason(position_after(stage, 2), is_gone=True), plan)
    assert "on.data.loss is fail" in str(failed)


def test_a_source_that_diverged_is_continued_from_there_under_a_new_producer_id(stage: Stage) -> None:
    copy_batches_of(stage, 3)
    start = resume(stage, ResumeReason(position_after(stage, 6), diverged_at=5))
    assert incident_of(start) is IncidentKind.SOURCE_TRUNCATED
    assert started(start).position == 5
    assert started(start).producer.producer.id != PRODUCER.id


@pytest.mark.parametrize("policy", list(OnTopicRecreated))
def test_a_recreated_source_starts_at_its_first_offset_unless_it_must_fail(
    stage: Stage, policy: OnTopicRecreated
) -> None:
    copy_batches_of(stage, 2)
    position = position_after(stage, 5)
    stage.replace_topic(stage.source, TOPIC)
    result = resume(stage, ResumeReason(position), reacting(stage, OnDataLoss.RECORD, policy))
    if policy is OnTopicRecreated.FAIL:
        assert "on.topic.recreated is fail" in str(result)
        return
    assert incident_of(result) is IncidentKind.SOURCE_RECREATED
    assert started(result).position == 0
    assert started(result).logs.source_id == logs_of(stage).source_id


@pytest.mark.parametrize(("policy", "first"), [(OnTopicRecreated.RECORD, 5), (OnTopicRecreated.RESTART, 0)])
def test_a_recreated_target_continues_or_restarts_by_policy(
    stage: Stage, policy: OnTopicRecreated, first: int
) -> None:
    position = position_after(stage, 5)
    stage.replace_topic(stage.target, REMOTE)
    result = resume(stage, ResumeReason(position), reacting(stage, OnDataLoss.RECORD, policy))
    assert incident_of(result) is IncidentKind.TARGET_RECREATED
    assert started(result).position == first


@pytest.mark.parametrize("is_known", [True, False])
def test_a_target_of_another_name_is_not_called_deleted(stage: Stage, *, is_known: bool) -> None:
    position = position_after(stage, 5)
    former_id = position.logs.target_id if is_known else b"x" * 16
    stage.replace_topic(stage.target, REMOTE)
    plan = stage.plan()
    renamed = [replace(each, former_target=FormerTarget("before", former_id)) for each in plan.partitions]
    start = started(resume(stage, ResumeReason(position), replace(plan, partitions=tuple(renamed))))
    assert (start.position, incident_of(start)) == (5, IncidentKind.TARGET_RECREATED)
    assert ("records went to before" in start.incidents[0].text) is is_known
    assert ("deleted" in start.incidents[0].text) is not is_known


def test_in_transactions_the_writers_producer_is_used() -> None:
    stage = stage_of(is_transactional=True)
    copy_batches_of(stage, 1)
    start = started(resume(stage, ResumeReason(position_after(stage, 2))))
    assert start[:2] == (2, ProducerState(NOT_IDEMPOTENT, 0, 2))


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
@pytest.mark.parametrize("api_key", [INIT_PRODUCER_ID, 0, 2, 3], ids=["id", "produce", "offsets", "metadata"])
def test_an_attempt_with_a_failed_request_succeeds_or_has_a_retriable_error(
    stage: Stage, api_key: int, fate: Fate
) -> None:
    stage.network.faults = faults = OneFault()
    faults.inject(api_key, fate)
    start = resume(stage, ResumeReason())
    assert faults.is_used
    if isinstance(start, RetriableError):
        start = resume(stage, ResumeReason(stored(stage)))
    known = stored(stage)
    assert known is not None
    assert (started(start).position, known.producer) == (0, started(start).producer)
