"""The copy loop against clusters in memory, in virtual time: one fault, at a moment that matters."""

import random
from collections.abc import Iterator

import pytest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnBadBatch
from sparkmirror.policies.rate_limits import RateLimits
from tests.memory.client_run import OneFault
from tests.memory.network import Fate
from tests.memory.source_records import BadKind
from tests.memory.stage import REMOTE, TOPIC, RunningTask, Shape, Stage

SOON_S = 5.0
AFTER_TIMEOUTS_S = 90.0
PRODUCE = 0
FETCH = 1
FIRST = TopicPartition(REMOTE, 0)


def stage_of(**shape: object) -> Stage:
    return Stage(random.Random(1), Shape(**shape))  # type: ignore[arg-type] # its fields


@pytest.fixture(params=["plain", "transactional"])
def stage(request: pytest.FixtureRequest) -> Stage:
    return stage_of(is_transactional=request.param == "transactional")


@pytest.fixture
def task(stage: Stage) -> Iterator[RunningTask]:
    started = stage.run_task()
    yield started
    started.kill()


class OnceLost:
    """One request of a kind fares badly, the others well."""

    def __init__(self, api_key: int, fate: Fate) -> None:
        self._api_key = api_key
        self._fate = fate
        self.was_used = False

    def fate(self, api_key: int, /) -> Fate:
        if self.was_used or api_key != self._api_key:
            return Fate.WELL
        self.was_used = True
        return self._fate


def assert_complete(stage: Stage, task: RunningTask, within_s: float = SOON_S) -> None:
    """Every record once and in order, and an orderly stop after it."""
    assert stage.run_until(lambda: stage.is_complete, within_s), [stage.copied(at) for at in stage.written]
    task.loop.stop()
    assert stage.run_until(lambda: task.is_over, SOON_S)
    stage.check_committed()
    assert stage.is_complete
    assert not stage.violations


def test_what_comes_after_the_end_is_ignored(stage: Stage, task: RunningTask) -> None:
    """Spark may kill a task, or its job may end, in the moment in which it ends by itself."""
    assert_complete(stage, task)
    task.loop.stop()
    task.loop.change_limits(RateLimits())
    task.loop.forget_stored()


def write_some(stage: Stage) -> None:
    for partition in stage.written:
        for count in (3, 1, 4):
            stage.write(partition, count)


def test_records_arrive_in_order_and_the_loop_stops(stage: Stage, task: RunningTask) -> None:
    write_some(stage)
    assert_complete(stage, task)


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])
@pytest.mark.parametrize("api_key", [PRODUCE, FETCH])
def test_a_request_that_fails_costs_no_record(
    stage: Stage, task: RunningTask, api_key: int, fate: Fate
) -> None:
    stage.run_until(lambda: False, 1.5)
    stage.network.faults = lost = OnceLost(api_key, fate)
    write_some(stage)
    assert_complete(stage, task, AFTER_TIMEOUTS_S)
    assert lost.was_used


def test_new_leaders_are_followed(stage: Stage, task: RunningTask) -> None:
    write_some(stage)
    assert stage.run_until(lambda: stage.is_complete, SOON_S)
    stage.source.move_leader(TopicPartition(TOPIC, 0))
    stage.target.move_leader(FIRST)
    write_some(stage)
    assert_complete(stage, task)


def test_a_task_that_is_killed_is_continued_exactly(stage: Stage) -> None:
    first = stage.run_task()
    write_some(stage)
    assert stage.run_until(lambda: bool(stage.target.log(FIRST).end), SOON_S)
    first.kill()
    write_some(stage)
    second = stage.run_task()
    assert_complete(stage, second, AFTER_TIMEOUTS_S)


def test_the_end_of_what_a_killed_task_copied_is_synced_though_nothing_follows(stage: Stage) -> None:
    """Else groups there stay translated to before it."""
    first = stage.run_task()
    write_some(stage)
    assert stage.run_until(lambda: stage.is_complete, SOON_S)
    assert not stage.forward.is_synced, "killed too late"
    first.kill()
    stage.run_task()
    assert stage.run_until(lambda: stage.forward.is_synced, AFTER_TIMEOUTS_S)


def test_what_followers_did_not_have_yet_is_not_copied_again_after_a_crash() -> None:
    """Followers may be behind for 30 s: what was written shows in the log only after that."""
    stage = stage_of(partitions=1)
    first = stage.run_task()
    stage.run_until(lambda: False, 1.0)
    stage.target.log(FIRST).hold()
    stage.write(0, 3)
    assert stage.run_until(lambda: stage.target.log(FIRST).end == 3, SOON_S)
    first.kill()
    stage.write(0, 2)
    second = stage.run_task()
    stage.run_until(lambda: False, 25.0)
    stage.target.log(FIRST).release()
    stage.target.changed()
    assert_complete(stage, second, AFTER_TIMEOUTS_S)


def test_a_batch_acknowledged_while_its_transaction_ends_is_committed_with_its_position() -> None:
    """The partition had no other batch in that transaction. A crash before the next must not repeat it."""
    stage = stage_of(is_transactional=True)
    first = stage.run_task()
    stage.run_until(lambda: False, 1.0)
    stage.target.log(FIRST).hold()
    stage.write(0, 3)
    stage.write(1, 3)
    assert stage.run_until(lambda: stage.target.log(FIRST).end == 3, SOON_S)
    stage.run_until(lambda: False, 0.5)  # the transaction is about to end, and waits for that batch
    stage.target.log(FIRST).release()
    stage.target.changed()
    assert stage.run_until(lambda: stage.is_complete, SOON_S)
    first.kill()
    stage.write(0, 1)
    assert_complete(stage, stage.run_task(), AFTER_TIMEOUTS_S)


def test_the_lag_of_a_transaction_that_is_not_committed_is_what_readers_lack() -> None:
    """The lag follows the position that is reported with it: both together tell where the source ends."""
    stage = stage_of(is_transactional=True)
    stage.run_task()
    stage.run_until(lambda: False, 1.0)
    stage.target.log(FIRST).hold()
    stage.write(0, 3)
    stage.write(1, 3)
    stage.run_until(lambda: False, 3.0)
    held = stage.forward.reported[1]
    assert (held.records, held.position, held.lag) == (3, None, 3), "acknowledged, and not committed"
    stage.target.log(FIRST).release()
    stage.target.changed()
    assert stage.run_until(lambda: stage.forward.reported[1].lag == 0, SOON_S)
    assert stage.forward.reported[1].position == 2
    assert stage.is_complete


def test_a_replaced_source_topic_is_copied_from_its_start() -> None:
    stage = stage_of(is_lossy=True)
    task = stage.run_task()
    write_some(stage)
    assert stage.run_until(lambda: stage.target.log(FIRST).end == 8, SOON_S)
    stage.replace_topic(stage.source, TOPIC)
    stage.calm()
    write_some(stage)
    assert_complete(stage, task, AFTER_TIMEOUTS_S)
    assert stage.copied(0) == list(range(16))


def test_a_position_that_is_sent_again_does_not_replace_the_one_behind_a_skipped_batch() -> None:
    """It is under the epoch before: a task that started from it would write records again."""
    stage = stage_of(partitions=1, bad=BadKind.TOO_LARGE, on_bad_batch=OnBadBatch.SKIP)
    stage.network.faults = faults = OneFault()
    first = stage.run_task()
    stage.write(0, 3)
    assert stage.run_until(lambda: stage.is_complete and stage.forward.is_stored, SOON_S)
    stage.write(0, 2)
    assert stage.run_until(lambda: stage.is_complete, SOON_S)
    stage.run_until(lambda: False, 0.5)
    for fate in (Fate.RESPONSE_LOST, Fate.REQUEST_LOST):  # of the position; then it waits before the next try
        faults.inject(PRODUCE, fate)
        assert stage.run_until(lambda: faults.is_used, SOON_S)
    stage.records.write_bad(0, BadKind.TOO_LARGE, before=0, after=3, skipped=True)
    assert stage.run_until(lambda: stage.is_complete, SOON_S)
    first.kill()
    stage.write(0, 1)
    assert_complete(stage, stage.run_task(), AFTER_TIMEOUTS_S)
    stage.forward.check_letters()
    assert not stage.violations
