"""Runs a copy loop without Spark, in a thread, under a plan made by the test."""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import confluent_kafka as confluent

from sparkmirror.copy.copy_loop import FENCED_PAUSE_S, CopyLoop
from sparkmirror.copy.copy_plan import OffsetSyncPlan, StatePlan, TaskPlan
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.positions import Position, position_record, read_positions
from sparkmirror.storage.progress import PartitionProgress
from sparkmirror.storage.progress_reader import ProgressReader
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import (
    Keyed,
    append,
    create_topic,
    ensure_compacted_topic,
    keyed_of,
    latest,
    numbered,
)
from tests.support.connections import connection
from tests.support.waiting import await_value

CONNECTOR: Final = ConnectorName("ContractConnector")
SOURCE: Final = Alias("near")
_PROCESS: Final = os.environ.get("PYTEST_XDIST_WORKER", "only")
"""Processes that share the clusters have state topics of their own, as mirrors have."""
POSITIONS: Final = f"contract.positions.{_PROCESS}"
PROGRESS: Final = f"contract.progress.{_PROCESS}"
ATTEMPTS: Final = f"contract.attempts.{_PROCESS}"
SYNCS: Final = f"contract.offset-syncs.{_PROCESS}"
DEAD_LETTERS: Final = StateTopic.DEAD_LETTERS.of(SOURCE)
STOP_TIMEOUT_S: Final = 10.0
WAIT_S: Final = 20.0


def remote(topic: str) -> str:
    return f"{SOURCE}.{topic}"


@dataclass(frozen=True, slots=True)
class Bench:
    """Two clusters with the state topics of a copy task."""

    source: AnyCluster
    target: AnyCluster

    def create_state_topics(self) -> None:
        compacted = {"cleanup.policy": "compact"}
        create_topic(self.target.bootstrap_servers, POSITIONS, partitions=3, config=compacted)
        create_topic(self.target.bootstrap_servers, PROGRESS, config=compacted)
        create_topic(self.target.bootstrap_servers, ATTEMPTS, config=compacted)
        ensure_compacted_topic(self.target.bootstrap_servers, DEAD_LETTERS)
        create_topic(self.source.bootstrap_servers, SYNCS, config=compacted)

    def create(
        self,
        topic: str,
        *,
        partitions: int = 1,
        source_config: Mapping[str, str] | None = None,
        target_config: Mapping[str, str] | None = None,
    ) -> None:
        """Create the topic at the source and its remote topic at the target."""
        create_topic(self.source.bootstrap_servers, topic, partitions=partitions, config=source_config)
        create_topic(
            self.target.bootstrap_servers, remote(topic), partitions=partitions, config=target_config
        )

    def plan(self, *partitions: TopicPartition, **consumer: object) -> TaskPlan:
        """Make a task plan; `consumer` are fields of ConsumerSettings."""
        source, target = connection(self.source, alias=SOURCE), connection(self.target, alias="far")
        return TaskPlan(
            flow=Flow(SOURCE, Alias("far")),
            connector=CONNECTOR,
            task=3,
            job_epoch=7,
            announced_at=0,
            partitions=tuple(CopyPartition(partition, remote(partition.topic)) for partition in partitions),
            consumer=replace(ConsumerSettings(source), **consumer),  # type: ignore[arg-type]  # see the docstring
            producer=ProducerSettings(target),
            state=StatePlan(target, POSITIONS, PROGRESS, ATTEMPTS),
            offset_syncs=OffsetSyncPlan(source, SYNCS, lag_max=1000),
        )

    def source_has(self, topic: str, count: int, *, partition: int = 0) -> list[Keyed]:
        """Append `count` numbered records at the source; returns all records of the partition."""
        there = self.written(topic, partition)
        new = numbered(count, len(there))
        append(self.source, topic, new, partition=partition)
        return [*there, *new]

    def written(self, topic: str, partition: int = 0) -> list[Keyed]:
        """Read keys and values of a partition at the source."""
        return keyed_of(self.source, topic, partition)

    def copied(self, topic: str, partition: int = 0) -> list[Keyed]:
        """Read keys and values of the partition's copy at the target."""
        return keyed_of(self.target, remote(topic), partition)

    def await_copied(self, topic: str, expected: list[Keyed], *, partition: int = 0) -> None:
        """Wait until exactly these records are at the target, in this order."""
        seen: list[Keyed] = []

        def arrived() -> bool:
            seen[:] = self.copied(topic, partition)
            return len(seen) >= len(expected)

        await_value(arrived, WAIT_S, lambda: f"{len(seen)} of {len(expected)} records of {topic}")
        assert seen == expected

    def position(self, partition: TopicPartition) -> int | None:
        """Read the stored position, the last replicated offset, by the key that Connect writes."""
        where = {"cluster": SOURCE, "partition": partition.partition, "topic": partition.topic}
        key = json.dumps([CONNECTOR, where], separators=(",", ":")).encode()
        value = latest(self.target, POSITIONS).get(key)
        return None if value is None else json.loads(value)["offset"]

    def store_position(self, partition: TopicPartition, offset: int) -> None:
        writer = TopicWriter(connection(self.target))
        writer.write(POSITIONS, [position_record(CONNECTOR, SOURCE, partition, Position(offset))])
        writer.close()


def connected(plan: TaskPlan, source: ConnectionSettings, target: ConnectionSettings) -> TaskPlan:
    """The plan over these connections; it writes no offset syncs."""
    return replace(
        plan,
        consumer=replace(plan.consumer, connection=source),
        producer=replace(plan.producer, connection=target),
        state=replace(plan.state, connection=target),
        offset_syncs=None,
    )


@contextmanager
def running(
    plan: TaskPlan, *, loop: asyncio.AbstractEventLoop | None = None, fenced_pause_s: float = FENCED_PAUSE_S
) -> Iterator[CopyLoop]:
    """A copy loop in a thread of its own. At the end of the block it must stop within `STOP_TIMEOUT_S`."""
    copy_loop = CopyLoop(plan, loop=loop, fenced_pause_s=fenced_pause_s)
    errors: list[Exception] = []
    thread = threading.Thread(target=_run, args=(copy_loop, errors), daemon=True)
    thread.start()
    try:
        yield copy_loop
    finally:
        if thread.is_alive():
            copy_loop.stop()
        thread.join(STOP_TIMEOUT_S)
    assert not thread.is_alive(), "the copy loop did not stop"
    assert not errors, errors


def _run(copy_loop: CopyLoop, errors: list[Exception]) -> None:
    try:
        copy_loop.run()
    except Exception as error:  # noqa: BLE001 - handed to the test's thread
        errors.append(error)


class ProgressReports:
    """Reads the progress records of a task's partitions."""

    def __init__(self, bench: Bench) -> None:
        self._reader = ProgressReader(connection(bench.target), PROGRESS)

    def close(self) -> None:
        self._reader.close()

    def await_progress(
        self, topic: str, holds: Callable[[PartitionProgress], bool], *, partition: int = 0
    ) -> PartitionProgress:
        """Wait for the first report of the partition for which `holds` is true."""
        seen: list[PartitionProgress] = []

        def found() -> PartitionProgress | None:
            key = CONNECTOR, TopicPartition(topic, partition)
            report = self._reader.poll(0.05).get(key)
            if report is not None:
                seen[:] = [report]
            return report if report is not None and holds(report) else None

        return await_value(found, WAIT_S, lambda: f"the last report was {seen}")


def message_fields(message: confluent.Message) -> tuple[object, ...]:
    """Return every field of a record that a copy must keep."""
    return message.key(), message.value(), message.timestamp(), message.headers()


def stored(bench: Bench, topic: str) -> Position:
    partition = TopicPartition(topic, 0)
    return read_positions(connection(bench.target), POSITIONS, CONNECTOR, SOURCE, [partition])[partition]


def store(bench: Bench, topic: str, position: Position) -> None:
    writer = TopicWriter(connection(bench.target))
    writer.write(POSITIONS, [position_record(CONNECTOR, SOURCE, TopicPartition(topic, 0), position)])
    writer.close()
