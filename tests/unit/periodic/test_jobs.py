"""A thread of periodic jobs: preparation, failing jobs, intervals and the stop."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from logging.handlers import QueueHandler
from math import inf
from typing import Final

import pytest

from sparkmirror.domain.errors import (
    AuthorizationError,
    ConfigError,
    DisconnectedError,
    SupersededError,
    UnfitTopicError,
)
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread, Schedule, persist, start_all, stop_all
from tests.support.waiting import await_value

WAIT_S: Final = 10.0
LOGGER: Final = "test_periodic"
NAME: Final = "a thread"

Make = Callable[..., PeriodicThread]


def nothing() -> None: ...


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes threads that end with the test."""
    made: list[PeriodicThread] = []

    def thread(prepare: Callable[[], Iterable[Job]], finish: Callable[[], None] = nothing) -> PeriodicThread:
        log = flow_log(LOGGER, Flow(Alias("a"), Alias("b")))
        made.append(PeriodicThread(NAME, log, prepare, finish))
        return made[-1]

    yield thread
    for periodic in made:
        periodic.stop()
    # `join` does not wait for one that still prepares, which may yet log something.
    running = [thread for thread in threading.enumerate() if thread.name == NAME]
    for each in running:
        each.join(WAIT_S)
        assert not each.is_alive()


def failing(times: int, error: Exception, done: threading.Event) -> Callable[[], None]:
    """An action that fails so many times before it is done."""
    left = iter([error] * times)

    def action() -> None:
        for failure in left:
            raise failure
        done.set()

    return action


def test_jobs_run_again_and_again(make: Make) -> None:
    ran = threading.Semaphore(0)
    thread = make(lambda: [Job("count", 0.001, ran.release)])
    thread.start()
    for _ in range(3):
        assert ran.acquire(timeout=WAIT_S)


def test_a_failed_job_is_logged_and_runs_again(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    done = threading.Event()
    action = failing(2, DisconnectedError("no answer"), done)
    make(lambda: [Job("ask", 0.001, action)]).start()
    assert done.wait(WAIT_S)
    await_value(lambda: len(caplog.records) == 2, WAIT_S, lambda: f"{caplog.records}")
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "ask failed: no answer"),
        ("INFO", "ask works again after 0 s"),
    ]


def test_a_job_that_lacks_a_right_runs_rarely(make: Make) -> None:
    """Owners of clusters find each denied request in an audit log."""
    ran: list[float] = []
    other = threading.Semaphore(0)

    def action() -> None:
        ran.append(time.monotonic())
        raise AuthorizationError("denied")

    thread = make(lambda: [Job("ask", 0.001, action), Job("other", 0.01, other.release)])
    thread.start()
    for _ in range(10):
        assert other.acquire(timeout=WAIT_S)
    assert len(ran) == 1


def test_a_job_that_is_hastened_is_denied_as_rarely(make: Make) -> None:
    denied, other = threading.Semaphore(0), threading.Semaphore(0)

    def action() -> None:
        thread.hasten("ask", 0.0)
        denied.release()
        raise AuthorizationError("denied")

    thread = make(lambda: [Job("ask", inf, action), Job("other", 0.01, other.release)])
    thread.start()
    for _ in range(10):
        assert other.acquire(timeout=WAIT_S)
    assert denied.acquire(timeout=WAIT_S)
    assert not denied.acquire(blocking=False)


def test_a_job_whose_wait_for_spark_is_given_up_ends_the_thread_without_a_word(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    finished = threading.Event()
    make(lambda: [Job("copy", 0.001, failing(1, CancelledError(), threading.Event()))], finished.set).start()
    assert finished.wait(WAIT_S)
    assert caplog.messages == []


def test_a_bug_in_a_job_is_logged_and_ends_neither_the_thread_nor_its_other_jobs(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    done, other = threading.Event(), threading.Semaphore(0)
    action = failing(1, AttributeError("no such name"), done)
    make(lambda: [Job("buggy", 0.001, action), Job("other", 0.001, other.release)]).start()
    assert done.wait(WAIT_S)
    assert other.acquire(timeout=WAIT_S)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "buggy failed")
    assert record.exc_info is not None


def test_a_stop_finishes_once_and_runs_no_further_job(make: Make) -> None:
    finished = threading.Semaphore(0)
    ran = threading.Event()
    thread = make(lambda: [Job("once", float("inf"), ran.set)], finished.release)
    thread.start()
    assert ran.wait(WAIT_S)
    thread.stop()
    assert thread.join(WAIT_S)
    assert finished.acquire(timeout=WAIT_S)
    assert not finished.acquire(blocking=False)


def test_threads_start_and_stop_together(make: Make) -> None:
    ran, finished = threading.Semaphore(0), threading.Semaphore(0)
    threads = [make(lambda: [Job("once", float("inf"), ran.release)], finished.release) for _ in range(2)]
    start_all(threads, lambda: True)
    for _ in threads:
        assert ran.acquire(timeout=WAIT_S)
    stop_all(threads)
    for _ in threads:
        assert finished.acquire(blocking=False)


def test_a_thread_that_does_not_end_in_time_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    ran, answer = threading.Event(), threading.Event()

    def job() -> None:
        ran.set()
        assert answer.wait(WAIT_S)

    thread = make(lambda: [Job("long", float("inf"), job)])
    thread.start()
    assert ran.wait(WAIT_S)
    thread.stop()
    assert not thread.join(timeout_s=0)
    answer.set()
    assert [record.getMessage() for record in caplog.records] == ["a thread did not end in time"]


def test_a_job_may_hasten_another(make: Make) -> None:
    hastened = threading.Event()
    thread = make(
        lambda: [Job("late", 3600.0, hastened.set, first_after_s=3600.0), Job("now", 3600.0, hasten)]
    )

    def hasten() -> None:
        thread.hasten("late", 0.0)

    thread.start()
    assert hastened.wait(WAIT_S)


def test_a_failed_preparation_is_logged_with_the_delay(make: Make) -> None:
    said: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = QueueHandler(said)

    def prepare() -> Iterable[Job]:
        raise DisconnectedError("can't connect to b")

    logging.getLogger(LOGGER).addHandler(handler)
    make(prepare).start()
    record = said.get(timeout=WAIT_S)
    logging.getLogger(LOGGER).removeHandler(handler)
    assert record.getMessage() == "can't connect to b; retrying in 1 s"


def test_some_failures_are_to_be_given_up_for(caplog: pytest.LogCaptureFixture) -> None:
    def action() -> None:
        raise ConfigError("group.id", "mm2", "belongs to a group of another kind")

    with pytest.raises(ConfigError):
        persist(action, threading.Event(), logging.getLogger(LOGGER), gives_up=lambda e: not e.retriable)
    assert not caplog.records


def test_a_thread_ends_with_the_error_when_its_topic_is_unfit(make: Make) -> None:
    def prepare() -> Iterable[Job]:
        raise UnfitTopicError("offset.storage.topic", "positions", "has cleanup.policy=delete")

    finished = threading.Event()
    thread = make(prepare, finished.set)
    thread.start()
    assert finished.wait(WAIT_S)
    assert isinstance(thread.failure, UnfitTopicError)


def test_a_thread_ends_with_the_error_when_another_process_copies_its_flow(make: Make) -> None:
    ran = threading.Event()

    def superseded() -> None:
        raise SupersededError("process 7 on another host copies this flow now")

    finished = threading.Event()
    thread = make(lambda: [Job("copy", 0.001, superseded), Job("next", 0.001, ran.set, 0.5)], finished.set)
    thread.start()
    assert finished.wait(WAIT_S)
    assert isinstance(thread.failure, SupersededError)
    assert not ran.is_set(), "no job runs afterwards"


def test_a_thread_that_still_prepares_is_not_waited_for(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    asked, answer = threading.Event(), threading.Event()

    def prepare() -> Iterable[Job]:
        asked.set()
        assert answer.wait(WAIT_S)
        raise DisconnectedError("nobody answers")

    finished = threading.Event()
    thread = make(prepare, finished.set)
    thread.start()
    assert asked.wait(WAIT_S)
    thread.stop()
    assert thread.join(timeout_s=0)
    answer.set()
    assert finished.wait(WAIT_S)
    assert not caplog.records, "nobody tries again"


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


def test_a_late_run_is_not_made_up_for() -> None:
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


def test_without_jobs_there_is_no_waiting_time() -> None:
    assert Schedule([], now=0.0).wait_s(5.0) is None


def test_a_hastened_job_runs_sooner_but_never_later() -> None:
    schedule = Schedule([job("a", 100.0)], now=0.0)
    assert due(schedule, 0.0) == ["a"]
    schedule.hasten("a", 30.0)
    schedule.hasten("a", 60.0)
    assert schedule.wait_s(0.0) == 30.0
    assert due(schedule, 30.0) == ["a"]
    assert schedule.wait_s(30.0) == 100.0


def test_an_overdue_job_has_no_waiting_time() -> None:
    assert Schedule([job("a", 1.0)], now=0.0).wait_s(50.0) == 0.0
