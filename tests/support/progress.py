"""Follows a mirror's progress topic until the mirror has caught up."""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Final

from sparkmirror.cli.commands.demo.watch import has_reached
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.storage.progress import PartitionProgress
from sparkmirror.storage.progress_reader import ProgressReader
from tests.support.broker_data import end_offsets, topics
from tests.support.connections import connection
from tests.support.waiting import await_value

CATCH_UP_TIMEOUT_S: Final = 60.0
_TICK_S: Final = 0.1


class Progress:
    """Follows one source's progress topic on the target. Made when the mirror has created it."""

    def __init__(self, target: LocalCluster, alias: str) -> None:
        topic = StateTopic.PROGRESS.of(Alias(alias))
        await_value(lambda: topic in topics(target), CATCH_UP_TIMEOUT_S, lambda: f"{topic} is not there")
        self._reader = ProgressReader(connection(target), topic)
        self._reader.catch_up()

    def now(self) -> Mapping[TopicPartition, PartitionProgress]:
        return {progress.source: progress for progress in self._reader.poll(_TICK_S).values()}

    def close(self) -> None:
        self._reader.close()


def await_caught_up(
    source: LocalCluster,
    target: LocalCluster,
    alias: str,
    names: Collection[str],
    timeout_s: float = CATCH_UP_TIMEOUT_S,
) -> None:
    """Wait until every record that these topics have now is acknowledged by the target."""
    ends = end_offsets(source, names)
    assert {partition.topic for partition in ends} == set(names), "a topic is missing on the source"
    with closing(Progress(target, alias)) as progress:
        await_value(
            lambda: has_reached(progress.now(), ends),
            timeout_s,
            lambda: f"{alias}: {_behind(progress.now(), ends)}",
        )


def _behind(snapshot: Mapping[TopicPartition, PartitionProgress], ends: Mapping[TopicPartition, int]) -> str:
    return "\n".join(
        f"{partition} ends at {end}: {snapshot.get(partition)}"
        for partition, end in ends.items()
        if end and not has_reached(snapshot, {partition: end})
    )
