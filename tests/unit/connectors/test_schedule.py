from math import inf

from sparkmirror.connectors.schedule import Job, Schedule


def nothing() -> None: ...


def job(name: str, interval_s: float, first_after_s: float = 0.0) -> Job:
    return Job(name, interval_s, nothing, first_after_s)


def due(schedule: Schedule, now: float) -> list[str]:
    return [each.name for each in schedule.take_due(now)]


def test_a_job_is_due_at_once_and_then_after_its_interval() -> None:
    schedule = Schedule([job("a", 10.0)], now=100.0)
    assert due(schedule, 100.0) == ["a"]
    assert due(schedule, 109.9) == []
    assert schedule.wait_s(104.0) == 6.0
    assert due(schedule, 110.0) == ["a"]


def test_a_first_delay_of_its_own() -> None:
    schedule = Schedule([job("a", 10.0, first_after_s=3.0)], now=100.0)
    assert due(schedule, 102.9) == []
    assert due(schedule, 103.0) == ["a"]
    assert schedule.wait_s(103.0) == 10.0


def test_what_came_late_is_not_made_up_for() -> None:
    schedule = Schedule([job("a", 10.0)], now=0.0)
    assert due(schedule, 35.0) == ["a"]
    assert due(schedule, 36.0) == []
    assert schedule.wait_s(36.0) == 9.0


def test_jobs_come_in_the_order_of_their_time() -> None:
    schedule = Schedule([job("a", 10.0, 2.0), job("b", 10.0, 1.0), job("c", 10.0, 9.0)], now=0.0)
    assert due(schedule, 5.0) == ["b", "a"]


def test_a_job_without_an_interval_runs_once() -> None:
    schedule = Schedule([job("a", inf)], now=0.0)
    assert due(schedule, 0.0) == ["a"]
    assert due(schedule, 1e12) == []
    assert schedule.wait_s(1e12) is None


def test_without_jobs_nobody_waits_for_anything() -> None:
    assert Schedule([], now=0.0).wait_s(5.0) is None


def test_a_hastened_job_runs_sooner_but_never_later() -> None:
    schedule = Schedule([job("a", 100.0)], now=0.0)
    assert due(schedule, 0.0) == ["a"]
    schedule.hasten("a", 30.0)
    schedule.hasten("a", 60.0)
    assert schedule.wait_s(0.0) == 30.0
    assert due(schedule, 30.0) == ["a"]
    assert schedule.wait_s(30.0) == 100.0


def test_what_is_overdue_is_not_waited_for() -> None:
    assert Schedule([job("a", 1.0)], now=0.0).wait_s(50.0) == 0.0
