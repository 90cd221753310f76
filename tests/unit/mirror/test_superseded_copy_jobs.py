"""Copy jobs of two processes that mirror the same flow, on a cluster in memory. Spark is not asked."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import SupersededError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter, read_topic
from sparkmirror.mirror.copy_jobs import CopyJobs
from sparkmirror.mirror.source_connector import SourceConnector
from sparkmirror.policies.rate_limits import NO_LIMITS
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.progress import Driver, JobEpoch, parse
from tests.memory.client_run import client_run

PROPERTIES = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
}


@pytest.fixture
def flow() -> Iterator[ConfiguredFlow]:
    (config,) = MirrorMakerConfig(Properties(PROPERTIES), {}).flows()
    settings = configured_flow(config)
    with client_run() as run:
        target = run.cluster("B")
        target.create(StateTopic.PROGRESS.of(settings.flow.source))
        yield replace(settings, worker_client=run.connection(target))


@pytest.fixture
def new_process(flow: ConfiguredFlow) -> Iterator[Callable[[], CopyJobs]]:
    """Makes the copy jobs of another process with each call."""
    assert flow.source is not None
    source, made = flow.source, list[CopyJobs]()

    def new() -> CopyJobs:
        made.append(CopyJobs(flow, source, Future(), lambda _: 1, lambda: NO_LIMITS))
        return made[-1]

    yield new
    for jobs in made:
        jobs.stop()


def write(flow: ConfiguredFlow, job_epoch: JobEpoch) -> None:
    with closing(TopicWriter(flow.worker_client)) as writer:
        writer.write(StateTopic.PROGRESS.of(flow.flow.source), [job_epoch.to_record()])


def announced(flow: ConfiguredFlow) -> list[JobEpoch]:
    records = read_topic(flow.worker_client, StateTopic.PROGRESS.of(flow.flow.source))
    return [found for found in map(parse, records) if isinstance(found, JobEpoch)]


def test_each_process_announces_a_number_and_itself(
    flow: ConfiguredFlow, new_process: Callable[[], CopyJobs], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first, second = new_process(), new_process()
    first.replace(())
    second.replace(())
    one, two = announced(flow)
    assert (one.number, two.number) == (1, 2)
    assert None not in (one.driver, two.driver)
    assert one.driver != two.driver
    (line,) = caplog.messages
    assert f"takes over from {one.driver}, which did not end its copy job 1" in line


def test_a_process_whose_job_was_superseded_names_the_other_and_announces_nothing(
    flow: ConfiguredFlow, new_process: Callable[[], CopyJobs]
) -> None:
    first, second = new_process(), new_process()
    first.replace(())
    second.replace(())
    first.forget()
    with pytest.raises(SupersededError) as raised:
        first.replace(())
    newest = announced(flow)[-1]
    assert (newest.number, len(announced(flow))) == (2, 2)
    assert str(raised.value) == f"{newest.driver}, copies this flow now, with copy job 2"
    second.forget()
    second.replace(())
    assert announced(flow)[-1].number == 3, "the process that copies continues after a job that ended"


def test_of_equal_numbers_the_later_one_in_the_log_counts(
    flow: ConfiguredFlow, new_process: Callable[[], CopyJobs]
) -> None:
    process = new_process()
    process.replace(())
    (own,) = announced(flow)
    other = replace(own, driver=Driver("elsewhere", 7, 1000.5))
    write(flow, other)
    assert other.ends(own)
    process.forget()
    with pytest.raises(SupersededError, match=r"process 7 on elsewhere"):
        process.replace(())


def test_a_process_takes_over_from_one_that_was_stopped(
    flow: ConfiguredFlow, new_process: Callable[[], CopyJobs], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first = new_process()
    first.replace(())
    (own,) = announced(flow)
    for driver in (own.driver, Driver("elsewhere", 7, 1000.5)):
        write(flow, replace(own, driver=driver, stopped=True))
        first.forget()
        first.replace(())
    assert [found.number for found in announced(flow)] == [1, 1, 2, 1, 3]
    assert not caplog.messages


def test_only_an_elected_process_takes_the_flow_back(
    flow: ConfiguredFlow, new_process: Callable[[], CopyJobs], caplog: pytest.LogCaptureFixture
) -> None:
    assert flow.source is not None
    source = SourceConnector(flow, flow.source, Future(), lambda _: 1)
    source._copy_jobs = jobs = new_process()
    source._running = (CopyPartition(TopicPartition("orders", 0), "A.orders"),)
    jobs.replace(())
    new_process().replace(())
    jobs.forget()
    with pytest.raises(SupersededError, match=r"copies this flow now.*READ on the flow's group.*stands by"):
        source._run(())
    assert announced(flow)[-1].number == 2
    source.thread.run_only_while(lambda: True)
    jobs.forget()
    source._run(())
    assert announced(flow)[-1].number == 3
    assert "copying is taken back" in caplog.text
