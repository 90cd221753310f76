"""Sequences of faults under which nothing should be there twice, and is. The drill does not draw them.

A test that passes has been mended: its mark must go, and the drill may draw its sequence.
"""

import random
from collections.abc import Callable

from sparkmirror.copy.copy_state import Phase
from sparkmirror.domain.incidents import OnBadBatch
from tests.memory.client_run import OneFault
from tests.memory.network import Fate
from tests.memory.source_records import BadKind
from tests.memory.stage import RunningTask, Shape, Stage

SOON_S = 5.0
AFTER_TIMEOUTS_S = 120.0
LIST_OFFSETS = 2


def stage_of(**shape: object) -> Stage:
    return Stage(random.Random(1), Shape(partitions=1, **shape))  # type: ignore[arg-type] # its fields


def reach(stage: Stage, holds: Callable[[], bool]) -> None:
    """Reach the situation that a test asserts about."""
    if not stage.run_until(holds, SOON_S):
        raise RuntimeError("not reached")


def copy_some(stage: Stage, count: int) -> None:
    """Also their positions."""
    stage.write(0, count)
    reach(stage, lambda: stage.is_complete and stage.forward.is_stored)


def assert_copied_once(stage: Stage, *tasks: RunningTask) -> None:
    """Within the time that refused sequences are looked into."""
    stage.run_until(lambda: bool(stage.violations), AFTER_TIMEOUTS_S)
    for task in tasks:
        task.kill()
    assert not stage.violations
    assert stage.is_complete


def test_two_attempts_that_start_before_a_position_is_stored_copy_each_record_once() -> None:
    stage = stage_of()
    tasks = stage.run_task(), stage.run_task()
    stage.write(0, 3)
    assert_copied_once(stage, *tasks)


def test_what_is_written_after_the_target_lost_records_is_not_repeated_by_a_crash() -> None:
    stage = stage_of(is_lossy=True)
    first = stage.run_task()
    copy_some(stage, 3)
    log = stage.forward.target_log(0)
    log.truncate(0, stage.target.now_ms())
    for count in (2, 1):
        stage.write(0, count)
        written = stage.written[0]
        reach(stage, lambda written=written: log.end == written - 3)  # type: ignore[misc]
    first.kill()
    stage.write(0, 1)
    assert_copied_once(stage, stage.run_task())


def test_an_attempt_that_starts_while_another_one_skips_a_batch_repeats_nothing() -> None:
    stage = stage_of(bad=BadKind.TOO_LARGE, on_bad_batch=OnBadBatch.SKIP)
    stage.network.faults = faults = OneFault()
    first = stage.run_task()
    copy_some(stage, 3)
    second = stage.run_task()
    (copy,) = second.loop.parts.copies
    reach(stage, lambda: copy.state.phase is Phase.RESOLVING)
    faults.inject(LIST_OFFSETS, Fate.SILENCE)
    reach(stage, lambda: faults.is_used)
    stage.records.write_bad(0, BadKind.TOO_LARGE, before=0, after=2, skipped=True)
    reach(stage, lambda: stage.is_complete)
    copy_some(stage, 1)
    first.kill()
    assert_copied_once(stage, second)
