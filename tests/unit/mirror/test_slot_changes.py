"""When partitions are reassigned because of Spark's slots and executors."""

import logging
from dataclasses import dataclass, field

import pytest

from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.mirror.slot_changes import SlotChanges
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.spark.host import JobState


@dataclass
class Jobs:
    """Stands for CopyJobs and their CopyJob."""

    current: JobState | None = None
    other_slots: bool = False
    can_move: bool = True
    limits: list[int | None] = field(default_factory=list)

    @property
    def job(self) -> "Jobs":
        return self

    def state(self, known_failures: int) -> JobState | None:  # noqa: ARG002 - a protocol's
        return self.current

    def has_other_slots(self) -> bool:
        return self.other_slots

    def limit_slots(self, slots: int | None) -> None:
        self.limits.append(slots)


def changes_of(jobs: Jobs) -> SlotChanges:
    return SlotChanges(flow_log("changes", Flow(Alias("A"), Alias("B"))), jobs)


def reasons(changes: SlotChanges, *times: float) -> list[str | None]:
    return [changes.check(now) for now in times]


def test_a_number_of_slots_that_lasts_is_a_reason_once() -> None:
    jobs = Jobs(JobState(4, 0, 0), other_slots=True)
    changes = changes_of(jobs)
    assert reasons(changes, 0.0, 2.0, 4.0, 6.0) == [None, None, "the number of Spark's slots changed", None]
    jobs.other_slots = False
    assert reasons(changes, 8.0, 20.0) == [None, None]


def test_tasks_leave_executors_that_are_decommissioned_once_there_are_others() -> None:
    jobs = Jobs(JobState(4, 0, 0, leaving=2), can_move=False)
    changes = changes_of(jobs)
    assert reasons(changes, 0.0) == [None]
    jobs.can_move = True
    assert reasons(changes, 2.0) == ["Spark decommissions executors with 2 of 4 tasks"]


def test_tasks_without_a_slot_are_done_without_after_a_minute_and_tried_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    jobs = Jobs(JobState(4, 1, 0))
    changes = changes_of(jobs)
    assert reasons(changes, 0.0, 30.0, 58.0, 60.0) == [None, None, None, "1 of 4 tasks got no slot in 60 s"]
    assert jobs.limits == [3]
    jobs.current = JobState(3, 0, 0)
    assert reasons(changes, 62.0, 600.0) == [None, None]
    assert jobs.limits == [3]
    changes.check(1300.0)
    assert jobs.limits == [3, None]
    assert len(caplog.messages) == 1, "the warning of the watch"


@pytest.mark.parametrize("state", [None, JobState(2, 2, 0), JobState(2, 0, 0)])
def test_where_none_runs_or_none_waits_nothing_is_gained(state: JobState | None) -> None:
    jobs = Jobs(state)
    assert reasons(changes_of(jobs), 0.0, 100.0, 200.0) == [None] * 3
    assert jobs.limits == []
