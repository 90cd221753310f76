"""Partitions are reassigned by load during the copy, without lost or repeated records."""

import logging
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.assignment import assign
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.mirror.reassignment import ReassignmentPolicy
from sparkmirror.mirror.source_connector import SourceConnector
from sparkmirror.settings.configured import configured_flow
from sparkmirror.spark.session import Session
from tests.spark.running_job import WAIT_S, JobTestbed
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.mirror import REPLICATION, START_TIMEOUT_S
from tests.support.progress import Progress, await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.traffic import flowing
from tests.support.waiting import await_value

ALIAS: Final = "dealer"
HOT: Final = "dealing.1-hot"
WARM: Final = ("dealing.3-warm", "dealing.5-warm")
QUIET: Final = ("dealing.2-quiet", "dealing.4-quiet", "dealing.6-quiet")
"""Assigned in turn, one of two tasks gets all partitions with load, the other one the idle ones."""
TOPICS: Final = (HOT, *WARM, *QUIET)
IMPATIENT: Final = ReassignmentPolicy(
    check_interval_s=0.5, lasting_s=1.5, interval_s=3600.0, mean_bytes_s_min=20_000.0
)
"""Reassignment after seconds and kilobytes instead of minutes and megabytes."""


@contextmanager
def running_source(testbed: JobTestbed) -> Iterator[None]:
    properties = {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": testbed.source.bootstrap_servers,
        "B.bootstrap.servers": testbed.target.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": ", ".join(TOPICS),
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
        **REPLICATION,
    }
    (config,) = MirrorMakerConfig(Properties(properties), {}).flows()
    settings = configured_flow(config)
    assert settings.source is not None
    session: Future[Session] = Future()
    session.set_result(testbed.session)
    thread = SourceConnector(settings, settings.source, session, lambda _: 2, IMPATIENT).thread
    thread.start()
    try:
        yield
    finally:
        thread.stop()
        assert thread.join(WAIT_S)


def test_partitions_with_load_of_one_task_are_spread_over_both(
    testbed: JobTestbed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sparkmirror")
    for topic in TOPICS:
        create_topic(testbed.source.bootstrap_servers, topic)
        # Remote topics that the mirror creates would cause further copy jobs.
        create_topic(testbed.target.bootstrap_servers, f"{ALIAS}.{topic}")
        append(testbed.source, topic, numbered(10))
    with ExitStack() as flows:
        # Load starts before the connector: a partition that has none yet would count as idle.
        for topic, rate in ((HOT, 3000), *((topic, 1000) for topic in WARM)):
            flows.enter_context(flowing(testbed.source, topic, rate=rate))
        await_value(lambda: have_load(testbed), WAIT_S, lambda: "not every topic gets records")
        with running_source(testbed):
            moved = await_value(
                lambda: re.search(r"copy job 2: moved (\d) of 6 partitions, task 0 had ", caplog.text),
                START_TIMEOUT_S,
                lambda: caplog.text,
            )
            after = tasks_of(testbed, job_epoch=2)
            flows.close()
            await_caught_up(testbed.source, testbed.target, ALIAS, TOPICS)
    in_turn = assign([TopicPartition(topic, 0) for topic in TOPICS], 2)
    before = {partition.topic: task for task, assigned in enumerate(in_turn) for partition in assigned}
    assert {before[topic] for topic in (HOT, *WARM)} == {0}
    # Which of them move depends on the loads measured while the backlog of the start is copied.
    assert {after[topic] for topic in (HOT, *WARM)} == {0, 1}
    assert {after[topic] for topic in QUIET} == {1}
    assert int(moved[1]) == sum(after[topic] != before[topic] for topic in TOPICS)
    for topic in TOPICS:
        source, target = testbed.source.bootstrap_servers, testbed.target.bootstrap_servers
        compared = compare_topic(source, target, topic, f"{ALIAS}.{topic}")
        assert compared.first_difference is None, f"{topic}: {compared.first_difference}"


def have_load(testbed: JobTestbed) -> bool:
    ends = end_offsets(testbed.source, [HOT, *WARM])
    return min(ends.values()) > 100


def tasks_of(testbed: JobTestbed, job_epoch: int) -> dict[str, int]:
    """Return each topic's task in that copy job, once all are copied and those with load have new records."""
    with closing(Progress(testbed.target, ALIAS)) as progress:

        def tasks() -> dict[str, int] | None:
            reports = {
                partition.topic: report
                for partition, report in progress.now().items()
                if report.job_epoch == job_epoch and (report.records or partition.topic in QUIET)
            }
            return {topic: reports[topic].task for topic in TOPICS} if reports.keys() == set(TOPICS) else None

        return await_value(tasks, START_TIMEOUT_S, lambda: str(progress.now()))
