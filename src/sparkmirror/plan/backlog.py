"""Computes how much a flow has to copy, from offsets, positions and sizes, and the rate to expect."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, list_offsets, log_sizes, reset_offsets
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.setup.new_partitions import left_out_of
from sparkmirror.storage.positions import NOTHING_REPLICATED, Position, read_positions
from sparkmirror.storage.progress import PartitionProgress, PartitionState, parse


@dataclass(frozen=True, slots=True)
class Backlog:
    """Maps by partition. A partition whose offsets can't be read is in none of them.

    `begins` and `ends` are the offsets between which there is something to copy, `sizes` its bytes, by the
    share that these offsets have of the log. `lost` counts records that retention took before they were
    copied; `homeless` have no position where `auto.offset.reset` is none.
    """

    positions: Mapping[TopicPartition, Position] = field(default_factory=dict)
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    lost: Mapping[TopicPartition, int] = field(default_factory=dict)
    homeless: Collection[TopicPartition] = ()
    left_out: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Records that `auto.offset.reset=latest` leaves out."""


def backlog(
    on: FlowWorker,
    connector: ConfiguredSource,
    partitions: Collection[TopicPartition],
    new: Collection[TopicPartition] = (),
    newer: Mapping[TopicPartition, Position] | None = None,
) -> Backlog:
    """Return what is left to copy.

    Partitions in `new` begin at their first record; `newer` positions replace the stored ones.
    Raises KafkaError when positions can't be read, or no broker responds.
    """
    if not partitions:
        return Backlog()
    consumer = connector.consumer_of(0)
    positions = {**stored_positions(on, connector, partitions), **(newer or {})}
    starts = _known(list_offsets(consumer, partitions, EARLIEST))
    ends = _known(list_offsets(consumer, partitions, LATEST))
    resets = _resets(consumer, [at for at in partitions if at not in positions and at not in new])
    begins, lost, skipped = dict[TopicPartition, int](), dict[TopicPartition, int](), {}
    homeless = []
    for partition in ends.keys() & starts.keys():
        position = positions.get(partition)
        if position is not None:
            begins[partition] = max(position.offset + 1, starts[partition])
            if position.offset != NOTHING_REPLICATED and starts[partition] > position.offset + 1:
                lost[partition] = starts[partition] - position.offset - 1
        elif partition in new or consumer.offset_reset is OffsetReset.EARLIEST:
            begins[partition] = starts[partition]
        elif consumer.offset_reset is OffsetReset.NONE:
            homeless.append(partition)
        elif partition in resets:
            begins[partition] = resets[partition]
            skipped[partition] = resets[partition] - starts[partition]
    left = [partition for partition, begin in begins.items() if begin < ends[partition]]
    sizes = log_sizes(consumer.connection, left) if left else {}
    shares = {
        partition: round(size * (ends[partition] - begins[partition]) / (ends[partition] - starts[partition]))
        for partition, size in sizes.items()
    }
    skipped = {partition: count for partition, count in skipped.items() if count}
    return Backlog(positions, begins, ends, shares, lost, homeless, skipped)


def left_out(
    on: FlowWorker, connector: ConfiguredSource, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Count what `auto.offset.reset` or `start.at` leaves out of partitions that are not new.

    Raises KafkaError.
    """
    consumer = connector.consumer_of(0)
    if consumer.offset_reset in (OffsetReset.EARLIEST, OffsetReset.NONE) or not partitions:
        return {}
    positions = stored_positions(on, connector, partitions)
    unbegun = [partition for partition in partitions if partition not in positions]
    return left_out_of(consumer, unbegun)


def _resets(
    consumer: ConsumerSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    if consumer.offset_reset in (OffsetReset.EARLIEST, OffsetReset.NONE):
        return {}
    return _known(reset_offsets(consumer, partitions))


def stored_positions(
    on: FlowWorker, connector: ConfiguredSource, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, Position]:
    """Read the stored positions; there are none before the flow has run. Raises KafkaError."""
    return unless_missing(lambda: read_positions(*on.positions_of(connector.name), partitions), {})


def reports(on: FlowWorker, connector: ConfiguredSource) -> Sequence[PartitionProgress]:
    """Read the tasks' progress records that are retained, in order. Raises KafkaError."""
    topic = StateTopic.PROGRESS.of(on.flow.source)
    records: list[object] = unless_missing(lambda: list(map(parse, read_topic(on.worker_client, topic))), [])
    return [
        report
        for report in records
        if isinstance(report, PartitionProgress) and report.connector == connector.name
    ]


def stopped(reported: Sequence[PartitionProgress]) -> Mapping[TopicPartition, str]:
    """Return the partitions that need action, by their last reports, and why."""
    last = {report.source: report for report in reported}
    return {
        source: report.error
        for source, report in last.items()
        if report.state is PartitionState.FAILED and report.error is not None
    }


def _known(offsets: Mapping[TopicPartition, int | SparkmirrorError]) -> dict[TopicPartition, int]:
    """Return the values that could be read; missing rights are findings of their own."""
    return {partition: offset for partition, offset in offsets.items() if isinstance(offset, int)}


_APART_MAX_S: Final = 10.0
"""Reports come once a second; between two that are further apart the task has stalled."""
_SECONDS_MIN: Final = 3
"""The fewest seconds with a backlog that make a measurement."""
_SECONDS_MAX: Final = 60


def measured_rate(reported: Iterable[PartitionProgress]) -> float | None:
    """Bytes per second of the whole flow; None if it was never behind long enough.

    A partition that keeps up is copied as fast as it's written: only one with a backlog of at least what it
    copied since the report before shows what the mirror can do.
    """
    by_partition: dict[TopicPartition, list[PartitionProgress]] = {}
    for report in reported:
        by_partition.setdefault(report.source, []).append(report)
    seconds: dict[int, float] = {}
    for reports_of_one in by_partition.values():
        for before, after in pairwise(reports_of_one):
            rate_s = _rate_while_behind(before, after)
            if rate_s is not None:
                second = int(after.updated_at)
                seconds[second] = seconds.get(second, 0.0) + rate_s
    newest = sorted(seconds)[-_SECONDS_MAX:]
    return None if len(newest) < _SECONDS_MIN else median(seconds[second] for second in newest)


def _rate_while_behind(before: PartitionProgress, after: PartitionProgress) -> float | None:
    passed_s = after.updated_at - before.updated_at
    size, records = after.bytes - before.bytes, after.records - before.records
    is_same_run = after.job_epoch == before.job_epoch and size > 0 and records > 0
    if not is_same_run or not 0 < passed_s <= _APART_MAX_S or not after.lag:
        return None
    is_behind = after.lag >= records
    return size / passed_s if is_behind else None
