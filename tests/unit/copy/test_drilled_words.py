"""The drill finds words that are wrong: they are planted in the topics that the view is made from."""

import random
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import ConnectorName, TopicPartition
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync
from sparkmirror.storage.positions import Position, position_record
from sparkmirror.storage.progress import PartitionProgress, PartitionState, TaskLoad, TaskProgress
from tests.memory.checked_flow import POSITIONS, SYNCS
from tests.memory.drill.outside import OutsideLooks
from tests.memory.drill.words import LATE_S, ONCE_KNOWN_S, SETTLED_S, FlowWords
from tests.memory.stage import REMOTE, TOPIC, Shape, Stage
from tests.support.batches import Rec, encode
from tests.support.progress_records import IDLE

DRILL: Final = ConnectorName("drill")
SOURCE: Final = TopicPartition(TOPIC, 0)
CAUGHT_UP: Final = replace(
    IDLE, connector=DRILL, source=SOURCE, target_topic=REMOTE, job_epoch=1, lag=0, position=None
)
MEASURED: Final = TaskLoad(0, None, *[0] * 10)


@pytest.fixture
def stage() -> Stage:
    return Stage(random.Random(1), Shape(partitions=1, source_brokers=1, target_brokers=1))


def plant(stage: Stage, topic: str, *records: LogRecord) -> None:
    """Append records to each partition of a topic on the target."""
    now_ms = stage.target.now_ms()
    for log in stage.target.topics[topic].partitions:
        recs = [Rec(at, now_ms, each.key, each.value) for at, each in enumerate(records)]
        assert log.append(bytes(encode(recs)), now_ms).error == 0


def report(stage: Stage, progress: PartitionProgress, every_s: float | None = 10.0) -> None:
    """Report as a task that copies nothing and measures itself every 10 s."""
    load = TaskProgress(DRILL, progress.task, 1, MEASURED, stage.time.time())
    plant(stage, stage.forward.progress_topic, progress.to_record(), load.to_record())
    if every_s is not None:
        stage.time.call_later(every_s, report, stage, progress, every_s)


def pass_time(stage: Stage, seconds: float) -> None:
    stage.run_until(lambda: False, seconds)


def test_a_partition_is_not_caught_up_while_records_are_missing(stage: Stage) -> None:
    FlowWords(stage, stage.forward)
    report(stage, CAUGHT_UP)
    stage.write(0, 3)
    pass_time(stage, LATE_S)
    assert not stage.violations
    pass_time(stage, ONCE_KNOWN_S + 2.0)
    assert "orders-0 is said to be caught up (no error), lag 0, 3 records are missing" in stage.violations[0]


@pytest.mark.parametrize(
    "said", [{"lag": 3}, {"state": PartitionState.RETRYING, "error": "no answer", "lag": None}]
)
def test_what_is_missing_is_said_by_its_lag_or_its_error(stage: Stage, said: dict[str, object]) -> None:
    FlowWords(stage, stage.forward)
    report(stage, replace(CAUGHT_UP, **said))  # type: ignore[arg-type]  # one of its fields
    stage.write(0, 3)
    pass_time(stage, 2 * LATE_S)
    assert not stage.violations


def test_a_task_that_reports_nothing_is_said_to_be_unknown(stage: Stage) -> None:
    FlowWords(stage, stage.forward)
    report(stage, CAUGHT_UP, every_s=None)
    stage.write(0, 3)
    pass_time(stage, 2 * LATE_S)
    assert not stage.violations


def test_a_word_of_what_is_over_is_wrong(stage: Stage) -> None:
    words = FlowWords(stage, stage.forward)
    report(stage, replace(CAUGHT_UP, state=PartitionState.RETRYING, error="no answer"))
    pass_time(stage, SETTLED_S)
    assert words.wrong() == ["orders-0 is said to be retrying (no answer), lag None"]
    report(stage, replace(CAUGHT_UP, state=PartitionState.FAILED, error="too large"))
    pass_time(stage, 2.0)
    assert words.wrong()[1:] == ["task 0 is FAILED for Connect: orders-0: too large"]


def test_a_failure_asks_somebody_to_act(stage: Stage) -> None:
    words = FlowWords(stage, stage.forward)
    report(stage, CAUGHT_UP)
    pass_time(stage, 2.0)
    assert not words.action_required(0)
    report(stage, replace(CAUGHT_UP, state=PartitionState.FAILED, error="too large"))
    pass_time(stage, 2.0)
    assert words.action_required(0)


def test_from_outside_a_lag_of_0_is_wrong_while_a_record_is_missing(stage: Stage) -> None:
    outside = OutsideLooks(stage, stage.forward)
    stage.write(0, 3)
    position = position_record(DRILL, stage.forward.ends.flow.source, SOURCE, Position(2))
    plant(stage, POSITIONS, position)
    outside.begin()
    pass_time(stage, 5.0)
    lacking = "and records [0, 1, 2] are missing"
    for how in ("seen from outside", "as it is explained"):
        assert any(it.endswith(f"orders-0 has lag 0, {how}, {lacking}") for it in stage.violations)


def test_from_outside_a_flow_that_has_not_begun_lags(stage: Stage) -> None:
    outside = OutsideLooks(stage, stage.forward)
    stage.write(0, 3)
    assert outside.wrong() == [
        "orders-0: lag 3, None",
        "orders-0 is explained: not begun: no position of it is stored, lag None",
    ]


def explained(stage: Stage, committed: int, there: int | None = None, sync: OffsetSync | None = None) -> str:
    """Return errors of a group's explanation: four records are copied, and this sync is planted."""
    stage.write(0, 4)
    plant(stage, REMOTE, *(LogRecord(b"key-0", b"%d" % at) for at in range(4)))
    if sync is not None:
        plant_sync(stage, sync)
    groups = OutsideLooks(stage, stage.forward).groups
    readers = groups.committed({0: committed}, {} if there is None else {0: there})
    looked = stage.network.executor().submit(groups.explained, readers)
    assert stage.run_until(looked.done, 60.0)
    return "; ".join(groups.unsettled(readers, looked.result()))


def plant_sync(stage: Stage, sync: OffsetSync) -> None:
    record, now_ms = RunSync(sync, 1).to_record(), stage.source.now_ms()
    log = stage.source.log(TopicPartition(SYNCS, 0))
    assert log.append(bytes(encode([Rec(0, now_ms, record.key, record.value)])), now_ms).error == 0


@pytest.mark.parametrize(
    ("committed", "sync", "wrong"),
    [
        (2, (1, 1), ""),
        (2, (1, 3), "2 is said to be 4 on the target: translated exactly; records [2, 3] are skipped"),
        (3, (2, 0), "3 is said to be 1 on the target: translated exactly; 2 records are read again"),
    ],
)
def test_a_group_that_continued_on_the_target_would_miss_nothing(
    stage: Stage, committed: int, sync: tuple[int, int], wrong: str
) -> None:
    said = explained(stage, committed, sync=OffsetSync(SOURCE, *sync))
    assert said == (f"group at orders-0: {wrong}" if wrong else "")


def test_a_group_whose_partition_was_copied_has_a_place_on_the_target(stage: Stage) -> None:
    assert explained(stage, 2) == (
        "group at orders-0: no sync yet: no offset sync: nothing of the partition was mirrored yet"
    )


def test_a_group_is_not_set_back_on_the_target(stage: Stage) -> None:
    assert explained(stage, 2, there=3, sync=OffsetSync(SOURCE, 1, 1)) == ""
