"""Sequences of events that lost or doubled records in the past, or would without one of the rules.

The protocol survives each, and a mutant does not.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from tests.model.incidents import DOUBLED, RECORDS_LOST, SOURCE_TRUNCATED, TARGET_LOST, UNCERTAIN
from tests.model.rules import Fence, Find, Rules
from tests.model.state import Faults
from tests.unit.model.script import Script, ViolationError

APPEND: Final = "a record is appended to the source"


def identical_records_expire_at_the_source(rules: Rules) -> Script:
    """All records look alike, and those behind the stored position are gone before the restart."""
    script = Script(rules, Faults(crash=1, expire=1), records=4)
    script.resume(1)
    script.copy(1)
    script.write(1)
    script.do("T1 crashes", "the source's log starts at 3")
    script.finish(2)
    return script


def batch_of_a_dead_attempt_arrives_late(rules: Rules) -> Script:
    """Between the successor's look-up and its first batch, on a compacted source."""
    script = Script(rules, Faults(crash=1, compact=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("T1 copies a batch of 1", "T1 crashes")
    script.resume(2)
    script.do("the source compacts offset 0 away")
    if script.can("request 0 arrives"):  # a fenced one is dropped by the model: it would change nothing
        script.do("request 0 arrives")
    script.finish(2)
    return script


def source_is_truncated_while_nobody_copies(rules: Rules) -> Script:
    """An unclean election, and the new leader continues past the offset where copying stopped."""
    script = Script(rules, Faults(crash=1, cut=1, append=3), records=3)
    script.resume(1)
    script.copy(1)
    script.write(1, 2)
    script.do("T1 crashes", "the source elects an unclean leader whose log ends at 1", *[APPEND] * 3)
    script.finish(2)
    return script


def target_comes_back_empty(rules: Rules) -> Script:
    """While copying continues."""
    script = Script(rules, Faults(truncate=1), records=3)
    script.resume(1)
    script.copy(1, 2)
    script.do("the target elects an unclean leader whose log ends at 0")
    script.finish(1)
    return script


def target_begins_to_stamp_append_times(rules: Rules) -> Script:
    """Records that are written then differ in content from the source's."""
    script = Script(rules, Faults(restamp=1, crash=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("the target stamps append times from now on")
    script.write(1)
    script.do("T1 crashes")
    script.finish(2)
    return script


def target_expires_past_the_position(rules: Rules) -> Script:
    """A record behind it is still there."""
    script = Script(rules, Faults(crash=1, retain=1), records=4)
    script.resume(1)
    script.copy(1)
    script.write(1)
    script.write(1)
    script.do("T1 crashes", "the target's log starts at 2")
    script.finish(2)
    return script


def frozen_task_stores_its_position_late(rules: Rules) -> Script:
    """Over that of its successor."""
    script = Script(rules, Faults(crash=2), records=3)
    script.resume(1)
    script.write(1)
    script.do("T1 takes an acknowledgement")
    script.resume(2)
    script.copy(2)
    script.do("T2 crashes", "T1 stores its position", "T1 crashes")
    script.finish(3)
    return script


def followers_hang_while_a_task_dies(rules: Rules) -> Script:
    """Records of the dead task are above the high watermark when the next one begins."""
    script = Script(rules, Faults(crash=1), records=2)
    script.resume(1)
    script.do("T1 copies a batch of 1", "request 0 arrives", "T1 crashes")
    script.resume_without_replication(2)
    script.finish(2)
    return script


def records_behind_a_gap_are_looked_up(rules: Rules) -> Script:
    """Compaction left a gap between two batches that nobody has acknowledged."""
    script = Script(rules, Faults(compact=1, crash=1), records=5)
    script.do("the source compacts offset 2 away")
    script.resume(1)
    script.copy(1)
    script.write(1)
    script.write(1)
    script.do("T1 crashes")
    script.finish(2)
    return script


def marker_stands_in_place_of_the_last_record(rules: Rules) -> Script:
    """The target's log is as long as before, and nothing of the attempt is left."""
    script = Script(rules, Faults(truncate=1, crash=1), records=1)
    script.resume(1)
    script.copy(1)
    script.do("T1 crashes", "the target elects an unclean leader whose log ends at 0")
    script.finish(2)
    return script


def batch_is_taken_without_the_one_before(rules: Rules) -> Script:
    """The first of two was refused, and the leader had forgotten the producer by the second."""
    script = Script(rules, Faults(forget=1, drop=1, crash=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("T1 copies a batch of 1", "T1 copies a batch of 1", "the target's leader forgets the producers")
    script.do("request 0 is lost or refused", "request 0 arrives", "the target's followers catch up")
    script.do("T1 crashes")
    script.finish(2)
    return script


def foreign_record_stands_in_the_place_of_a_refused_batch(rules: Rules) -> Script:
    """So there are as many offsets as there should be."""
    script = Script(rules, Faults(forget=1, drop=1, foreign=1, crash=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("T1 copies a batch of 1", "T1 copies a batch of 1", "the target's leader forgets the producers")
    script.do("a foreign record is appended to the target", "request 0 is lost or refused")
    script.arrive()
    script.do("T1 crashes")
    script.finish(2)
    return script


def attempt_writes_below_its_own_beginning(rules: Rules) -> Script:
    """It fills the place of what was lost, its own marker included."""
    script = Script(rules, Faults(truncate=1, crash=2), records=4)
    script.resume(1)
    script.copy(1)
    script.copy(1)
    script.do("T1 crashes")
    script.resume(2)
    script.do("the target elects an unclean leader whose log ends at 1")
    script.do("T2 finds a new leader of the target")
    script.write(2, 2)
    script.do("T2 crashes")
    script.finish(3)
    return script


def attempt_fills_the_place_of_its_records(rules: Rules) -> Script:
    """And dies before that is acknowledged."""
    script = Script(rules, Faults(truncate=1, crash=1), records=4)
    script.resume(1)
    script.copy(1, 2)
    script.do("the target elects an unclean leader whose log ends at 0")
    script.do("T1 finds a new leader of the target")
    script.write(1, 2)
    script.do("T1 crashes")
    script.finish(2)
    return script


def batch_is_taken_a_second_time(rules: Rules) -> Script:
    """A late copy of it ends the log."""
    script = Script(rules, Faults(forget=1, resend=1, crash=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("T1 copies a batch of 1", "T1 sends again what is not answered")
    script.arrive()
    script.do("T1 takes an acknowledgement")
    script.write(1)
    script.do("the target's leader forgets the producers", "request 0 arrives")
    script.do("the target's followers catch up", "T1 crashes")
    script.finish(2)
    return script


def batch_is_taken_a_second_time_and_those_before_expire(rules: Rules) -> Script:
    """The rest of the log does not tell what is there already."""
    script = Script(rules, Faults(forget=1, resend=1, crash=1, retain=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("T1 copies a batch of 1", "T1 sends again what is not answered")
    script.arrive()
    script.do("T1 takes an acknowledgement")
    script.write(1)
    script.do("the target's leader forgets the producers", "request 0 arrives")
    script.do("the target's followers catch up", "T1 crashes", "the target's log starts at 3")
    script.finish(2)
    return script


def all_that_was_acknowledged_is_lost(rules: Rules) -> Script:
    """The loss is behind a gap, before a position is stored: only the record of the ends tells of it."""
    script = Script(rules, Faults(compact=1, truncate=1, crash=1), records=5)
    script.do("the source compacts offset 2 away")
    script.resume(1)
    script.write(1, 2)
    script.do("T1 takes an acknowledgement", "T1 copies a batch of 1")
    script.do("the target elects an unclean leader whose log ends at 0", "T1 crashes")
    script.finish(2)
    return script


def fenced_batch_is_taken_and_the_source_loses_it(rules: Rules) -> Script:
    """The leader forgot the fence, and the successor has read nothing else of that leader epoch."""
    script = Script(rules, Faults(forget=1, cut=1, append=2), records=0)
    script.resume(1)
    script.do(APPEND, "T1 copies a batch of 1", "T2 begins")
    script.do("T2 claims an epoch", "T2 records its claim", "T2 reads the attempts")
    script.do("T2 adds the partition to a transaction", "T2 ends the transaction")
    script.do("the coordinator's marker reaches the target", "the target's leader forgets the producers")
    script.arrive()
    script.do("the source elects an unclean leader whose log ends at 0", APPEND)
    script.finish(2)
    return script


class Case(NamedTuple):
    run: Callable[[Rules], Script]
    target: list[int]
    incidents: set[str]
    mutant: Rules


BY_CONTENT: Final = Rules(find=Find.BY_CONTENT)
CASES: Final = [
    Case(identical_records_expire_at_the_source, [0, 1, 3], {RECORDS_LOST}, BY_CONTENT),
    Case(batch_of_a_dead_attempt_arrives_late, [0, 1, 2], set(), Rules(fence=Fence.NONE)),
    Case(
        source_is_truncated_while_nobody_copies,
        [0, 1, 2, 101, 102, 103],
        {SOURCE_TRUNCATED},
        Rules(records_epochs=False),
    ),
    Case(
        target_comes_back_empty,
        [2],
        {TARGET_LOST},
        Rules(checks_base_offsets=False, looks_on_new_leaders=False),
    ),
    Case(target_begins_to_stamp_append_times, [0, 1, 2], set(), BY_CONTENT),
    Case(target_expires_past_the_position, [0, 1, 2, 3], set(), BY_CONTENT),
    Case(frozen_task_stores_its_position_late, [0, 1, 2], set(), Rules(attempts_decide=False)),
    Case(followers_hang_while_a_task_dies, [0, 1], set(), Rules(awaits_marker=False)),
    Case(records_behind_a_gap_are_looked_up, [0, 1, 3, 4], set(), Rules(find=Find.BY_COUNT)),
    Case(marker_stands_in_place_of_the_last_record, [], {TARGET_LOST}, Rules(proves_marker=False)),
    Case(batch_is_taken_without_the_one_before, [0, 2, 1, 2], {DOUBLED}, Rules(counts_offsets=False)),
    Case(
        foreign_record_stands_in_the_place_of_a_refused_batch,
        [0, 2, 1, 2],
        {DOUBLED},
        Rules(counts_offsets=False),
    ),
    Case(attempt_writes_below_its_own_beginning, [0, 2, 3], {TARGET_LOST}, Rules(counts_offsets=False)),
    Case(attempt_fills_the_place_of_its_records, [2, 3], {TARGET_LOST}, Rules(counts_offsets=False)),
    Case(all_that_was_acknowledged_is_lost, [3, 4], {TARGET_LOST}, Rules(records_acknowledged=False)),
    Case(batch_is_taken_a_second_time, [0, 1, 2, 1], {DOUBLED}, Rules(counts_offsets=False)),
    Case(
        batch_is_taken_a_second_time_and_those_before_expire,
        [0, 1, 2, 1, 2],
        {UNCERTAIN},
        Rules(counts_offsets=False),
    ),
    Case(
        fenced_batch_is_taken_and_the_source_loses_it,
        [0, 100],
        {SOURCE_TRUNCATED},
        Rules(counts_offsets=False),
    ),
]


def name(case: Case) -> str:
    return case.run.__name__


@pytest.mark.parametrize("case", CASES, ids=name)
def test_protocol_survives(case: Case) -> None:
    script = case.run(Rules())
    assert (script.target, script.incidents) == (case.target, case.incidents)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_mutant_does_not(case: Case) -> None:
    try:
        script = case.run(case.mutant)
    except ViolationError:
        return
    assert (script.target, script.incidents) != (case.target, case.incidents)


def test_records_that_expired_from_the_target_may_come_twice_and_that_is_told() -> None:
    script = Script(Rules(), Faults(crash=1, retain=1), records=4)
    script.resume(1)
    script.copy(1)
    script.write(1)
    script.write(1)
    script.do("T1 crashes", "the target's log starts at 3")
    script.finish(2)
    assert script.target == [0, 1, 2, 1, 2, 3]
    assert script.incidents == {UNCERTAIN}


def test_what_a_frozen_task_writes_where_the_target_lost_the_marker_is_told() -> None:
    """The frozen task's batch is just as long as what was lost, so that no base offset tells of it."""
    script = Script(Rules(), Faults(truncate=1, again=1), records=2)
    script.resume(1)
    script.copy(1)
    script.resume(2)
    script.do(
        "the target elects an unclean leader whose log ends at 1", "T1 finds a new leader of the target"
    )
    script.do("T1 copies a batch of 1")
    script.arrive()
    script.finish(2)
    assert script.target == [0, 1, 1]
    assert script.incidents == {TARGET_LOST}
