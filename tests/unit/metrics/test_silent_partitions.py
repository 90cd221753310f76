from collections.abc import Collection
from dataclasses import replace

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.silent_partitions import PATIENCE_S, Silence, SilentPartitions
from sparkmirror.storage.progress import JobEpoch, PartitionProgress
from tests.support.progress_records import IDLE

SECOND = JobEpoch(IDLE.connector, 2, partitions=3)


def reports(job_epoch: int, count: int) -> list[PartitionProgress]:
    return [
        replace(IDLE, job_epoch=job_epoch, source=TopicPartition("orders", number)) for number in range(count)
    ]


class Watch:
    def __init__(self) -> None:
        self._silent = SilentPartitions()

    def told(self, now: float, job_epoch: JobEpoch, reported: Collection[PartitionProgress]) -> list[Silence]:
        return list(self._silent.look([job_epoch], reported, now))


def test_silence_is_told_once_when_patience_ends() -> None:
    watch, two = Watch(), reports(2, 2)
    assert watch.told(0.0, SECOND, two) == []
    assert watch.told(PATIENCE_S - 0.1, SECOND, two) == []
    assert watch.told(PATIENCE_S, SECOND, two) == [Silence(SECOND, 1)]
    assert watch.told(PATIENCE_S + 1, SECOND, two) == []


def test_its_end_is_told_too() -> None:
    watch = Watch()
    watch.told(0.0, SECOND, [])
    assert watch.told(PATIENCE_S, SECOND, []) == [Silence(SECOND, 3)]
    assert watch.told(PATIENCE_S + 1, SECOND, reports(2, 3)) == [Silence(SECOND, 0)]
    assert watch.told(PATIENCE_S + 2, SECOND, reports(2, 3)) == []


def test_reports_of_an_older_generation_do_not_count() -> None:
    watch = Watch()
    watch.told(0.0, SECOND, reports(1, 3))
    assert watch.told(PATIENCE_S, SECOND, reports(1, 3)) == [Silence(SECOND, 3)]


def test_nobody_expects_a_stopped_generation_to_report() -> None:
    watch, stopped = Watch(), JobEpoch(IDLE.connector, 2, partitions=3, stopped=True)
    watch.told(0.0, stopped, [])
    assert watch.told(PATIENCE_S, stopped, []) == []


def test_patience_begins_anew_with_each_generation() -> None:
    watch, third = Watch(), JobEpoch(IDLE.connector, 3, partitions=3)
    watch.told(0.0, SECOND, [])
    assert watch.told(PATIENCE_S, third, []) == []
    assert watch.told(2 * PATIENCE_S, third, []) == [Silence(third, 3)]
