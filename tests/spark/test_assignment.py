"""Partitions are reassigned by load while data flows, and nothing happens to the data."""

import logging
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.connectors.flow_settings import flow_settings
from sparkmirror.domain.assignment import assign
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.mirror.reassignment import ReassignmentPolicy
from sparkmirror.mirror.source_connector import SourceConnector
from sparkmirror.spark.session import Session
from tests.spark.running_job import WAIT_S, Bed
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.mirror import REPLICATION, START_TIMEOUT_S
from tests.support.progress import Progress, await_caught_up
from tests.support.topic_comparison import compare_topic
from tests.support.traffic import flowing
from tests.support.waiting import await_value

ALIAS: Final = "dealing"
HOT: Final = "dealing.1-hot"
WARM: Final = ("dealing.3-warm", "dealing.5-warm")
QUIET: Final = ("dealing.2-quiet", "dealing.4-quiet", "dealing.6-quiet")
"""In turn, two tasks get all that flows and all that is quiet."""
TOPICS: Final = (HOT, *WARM, *QUIET)
IMPATIENT: Final = ReassignmentPolicy(
    check_interval_s=0.5, lasting_s=1.5, interval_s=3600.0, mean_bytes_s_min=20_000.0
)
"""What takes a mirror a minute and megabytes."""


@contextmanager
def running_source(bed: Bed) -> Iterator[None]:
    properties = {
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": bed.source.bootstrap_servers,
        "B.bootstrap.servers": bed.target.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": ", ".join(TOPICS),
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
        **REPLICATION,
    }
    (config,) = MirrorMakerConfig(Properties(properties), {}).flows()
    settings = flow_settings(config)
    assert settings.source is not None
    session: Future[Session] = Future()
    session.set_result(bed.session)
    thread = SourceConnector(settings, settings.source, session, lambda _: 2, IMPATIENT).thread
    thread.start()
    try:
        yield
    finally:
        thread.stop()
        assert thread.join(WAIT_S)


def test_a_hot_partition_gets_its_task_while_data_flows(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sparkmirror")
    for topic in TOPICS:
        create_topic(bed.source.bootstrap_servers, topic)
        create_topic(bed.target.bootstrap_servers, f"{ALIAS}.{topic}")  # or more would come of new topics
        append(bed.source, topic, numbered(10))
    with ExitStack() as flows:
        # They flow before anybody looks: what has not begun yet can't be told from what is quiet.
        for topic, rate in ((HOT, 3000), *((topic, 1000) for topic in WARM)):
            flows.enter_context(flowing(bed.source, topic, rate=rate))
        await_value(lambda: all_flow(bed), WAIT_S, lambda: "not every topic flows")
        with running_source(bed):
            moved = await_value(
                lambda: re.search(r"copy job 2: moved (\d) of 6 partitions, task 0 had ", caplog.text),
                START_TIMEOUT_S,
                lambda: caplog.text,
            )
            after = tasks_of(bed, job_epoch=2)
            flows.close()
            await_caught_up(bed.source, bed.target, ALIAS, TOPICS)
    in_turn = assign([TopicPartition(topic, 0) for topic in TOPICS], 2)
    before = {partition.topic: task for task, dealt in enumerate(in_turn) for partition in dealt}
    assert {before[topic] for topic in (HOT, *WARM)} == {0}
    assert after[HOT] not in {after[topic] for topic in WARM}
    assert {after[topic] for topic in QUIET} == {1}
    assert int(moved[1]) == sum(after[topic] != before[topic] for topic in TOPICS)
    for topic in TOPICS:
        source, target = bed.source.bootstrap_servers, bed.target.bootstrap_servers
        compared = compare_topic(source, target, topic, f"{ALIAS}.{topic}")
        assert compared.first_difference is None, f"{topic}: {compared.first_difference}"


def all_flow(bed: Bed) -> bool:
    ends = end_offsets(bed.source, [HOT, *WARM])
    return min(ends.values()) > 100


def tasks_of(bed: Bed, job_epoch: int) -> dict[str, int]:
    """Each topic's task, once all are copied in that copy job, and all that flow have got on in it."""
    with closing(Progress(bed.target, ALIAS)) as progress:

        def tasks() -> dict[str, int] | None:
            reports = {
                partition.topic: report
                for partition, report in progress.now().items()
                if report.job_epoch == job_epoch and (report.records or partition.topic in QUIET)
            }
            return {topic: reports[topic].task for topic in TOPICS} if reports.keys() == set(TOPICS) else None

        return await_value(tasks, START_TIMEOUT_S, lambda: str(progress.now()))
