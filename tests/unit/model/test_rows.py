"""Events that lost or doubled records in the past: the protocol survives each, and a mutant does not."""

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from tests.model.incidents import DOUBLED, RECORDS_LOST, SOURCE_TRUNCATED, TARGET_LOST, UNCERTAIN
from tests.model.rules import Fence, Find, Rules, Setting
from tests.model.state import Faults
from tests.unit.model.script import Script, ViolationError


def identical_records_expire_at_the_source(rules: Rules) -> Script:
    """All records look alike, and those behind the stored position are gone before the restart."""
    script = Script(rules, Faults(crash=1, expire=1), records=4)
    script.resume(1)
    script.copy(1)
    script.write(1)
    script.do("A1 crashes", "the source's log starts at 3")
    script.finish(2)
    return script


def batch_of_a_dead_attempt_arrives_late(rules: Rules) -> Script:
    """Between the successor's reading back and its first batch, on a compacted source."""
    script = Script(rules, Faults(crash=1, compact=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("A1 copies a batch of 1", "A1 crashes")
    script.resume(2)
    script.do("the source compacts offset 0 away")
    if script.can("request 0 arrives"):  # a fenced one is dropped by the model: it would change nothing
        script.do("request 0 arrives")
    script.finish(2)
    return script


def source_is_truncated_while_nobody_copies(rules: Rules) -> Script:
    """An unclean election, and the new leader goes on past the offset where copying stopped."""
    script = Script(rules, Faults(crash=1, cut=1, append=3), records=3)
    script.resume(1)
    script.copy(1)
    script.write(1, 2)
    script.do("A1 crashes", "the source elects an unclean leader whose log ends at 1")
    script.do(*["a record is appended to the source"] * 3)
    script.finish(2)
    return script


def target_comes_back_empty(rules: Rules) -> Script:
    """While copying goes on."""
    script = Script(rules, Faults(truncate=1), records=3)
    script.resume(1)
    script.copy(1, 2)
    script.do("the target elects an unclean leader whose log ends at 0")
    script.finish(1)
    return script


def target_begins_to_stamp_append_times(rules: Rules) -> Script:
    """What is written then differs in content from the source."""
    script = Script(rules, Faults(restamp=1, crash=1), records=3)
    script.resume(1)
    script.copy(1)
    script.do("the target stamps append times from now on")
    script.write(1)
    script.do("A1 crashes")
    script.finish(2)
    return script


def target_expires_past_the_position(rules: Rules) -> Script:
    """A record behind it is still there."""
    script = _behind_its_position(rules)
    script.do("the target's log starts at 3")
    script.finish(2)
    return script


def target_expires_altogether(rules: Rules) -> Script:
    """Of what was written behind the position nothing is left."""
    script = _behind_its_position(rules)
    script.do("the target's log starts at 4")
    script.finish(2)
    return script


def frozen_attempt_stores_its_position_late(rules: Rules) -> Script:
    """Over that of its successor, and then the target expires."""
    script = Script(rules, Faults(crash=2, retain=1), records=3)
    script.resume(1)
    script.write(1)
    script.do("A1 takes an acknowledgement")
    script.resume(2)
    script.copy(2)
    script.do("A2 crashes", "A1 stores its position", "A1 crashes", "the target's log starts at 4")
    script.finish(3)
    return script


def followers_hang_while_an_attempt_dies(rules: Rules) -> Script:
    """What it wrote is above the high watermark when the next one begins."""
    script = Script(rules, Faults(crash=1), records=2)
    script.resume(1)
    script.do("A1 copies a batch of 1", "request 0 arrives", "A1 crashes")
    script.resume_without_replication(2)
    script.finish(2)
    return script


def leader_forgets_the_producer(rules: Rules) -> Script:
    """Old records, and an answer that never comes."""
    script = Script(rules, Faults(forget=1, silence=1), records=2, setting=Setting(is_old=True))
    script.resume(1)
    script.do("A1 copies a batch of 1", "request 0 arrives, its answer is lost")
    script.do("the target's leader forgets the producers")
    script.finish(1)
    return script


def leader_forgets_a_fence(rules: Rules) -> Script:
    """Old records, and a fenced attempt's batch arrives then."""
    script = Script(rules, Faults(forget=1), records=2, setting=Setting(is_old=True))
    script.resume(1)
    script.do("A1 copies a batch of 1")
    script.resume(2)
    script.do("the target's leader forgets the producers", "request 0 arrives")
    script.finish(2)
    return script


def _behind_its_position(rules: Rules) -> Script:
    script = Script(rules, Faults(crash=1, retain=1), records=4)
    script.resume(1)
    script.copy(1)
    script.write(1)
    script.write(1)
    script.do("A1 crashes")
    return script


class Row(NamedTuple):
    run: Callable[[Rules], Script]
    target: list[int]
    incidents: set[str]
    mutant: Rules


NO_FENCE: Final = Rules(fence=Fence.NONE, proves_marker=False)
BY_CONTENT: Final = Rules(find=Find.BY_CONTENT)
ROWS: Final = [
    Row(identical_records_expire_at_the_source, [0, 1, 3], {RECORDS_LOST}, BY_CONTENT),
    Row(batch_of_a_dead_attempt_arrives_late, [0, 1, 2], set(), NO_FENCE),
    Row(
        source_is_truncated_while_nobody_copies,
        [0, 1, 2, 101, 102, 103],
        {SOURCE_TRUNCATED},
        Rules(claims_copied_epoch=False),
    ),
    Row(
        target_comes_back_empty,
        [2],
        {TARGET_LOST},
        Rules(checks_new_leader=False, checks_base_offsets=False),
    ),
    Row(target_begins_to_stamp_append_times, [0, 1, 2], set(), BY_CONTENT),
    Row(target_expires_past_the_position, [0, 1, 2, 3], set(), BY_CONTENT),
    Row(target_expires_altogether, [0, 1, 2, 1, 2, 3], {UNCERTAIN}, Rules(exact_positions_only=False)),
    Row(frozen_attempt_stores_its_position_late, [0, 1, 1, 2], {UNCERTAIN}, Rules(own_positions_only=False)),
    Row(followers_hang_while_an_attempt_dies, [0, 1], set(), NO_FENCE),
    Row(leader_forgets_the_producer, [0, 1], set(), Rules(waits_if_old=False)),
    Row(leader_forgets_a_fence, [0, 0, 1], {DOUBLED}, Rules(checks_base_offsets=False)),
]


def name(row: Row) -> str:
    return row.run.__name__


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_protocol_survives(row: Row) -> None:
    script = row.run(Rules())
    assert (script.target, script.incidents) == (row.target, row.incidents)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_mutant_does_not(row: Row) -> None:
    with pytest.raises(ViolationError):
        row.run(row.mutant)
