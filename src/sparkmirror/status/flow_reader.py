"""Reads how a flow's mirror is from Kafka alone: end offsets, positions, offset syncs, reports, heartbeats.

It works for any mirror, Java's included, and for one that does not run. Java stores a position once a minute.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from typing import Final

from sparkmirror.batches.record_batch import CONTROL, iterate_batches
from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.latency import EMPTY
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.setup.topic_explanation import AHEAD
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_look import FlowLook
from sparkmirror.status.flow_offsets import FlowOffsets, existing_offsets, offsets_or_errors
from sparkmirror.status.last_heartbeat import LastHeartbeat
from sparkmirror.status.mirrored_partitions import Listed, list_selected
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.progress_reader import ProgressReader

NOT_BEGUN = "not begun, and auto.offset.reset decides where it begins"
ABSENT = "the source has no such partition now"
_FETCH_BYTES: Final = 1 << 20
_RECENT_S: Final = 60.0


class FlowReader:
    """Reads looks, each from where the last one ended. Not thread-safe; its owner closes it."""

    def __init__(self, access: FlowAccess, now: Callable[[], float] = time.time) -> None:
        """`now` gives epoch seconds."""
        self._access = access
        self._now = now
        self._everything = ConsumerSettings(access.consumer.connection)
        self._offsets = FlowOffsets(access)
        self._promotions = access.promotions_reader()
        self._heartbeat = LastHeartbeat(access)
        self._progress = ProgressReader(
            access.positions, StateTopic.PROGRESS.of(access.flow.source), may_be_missing=True
        )

    def close(self) -> None:
        with ExitStack() as stack:
            for reader in (self._offsets, self._heartbeat, self._progress):
                stack.enter_context(closing(reader))

    def read(self) -> FlowLook:
        """Raises KafkaError."""
        connector, heartbeat = self._access.connector, self._access.heartbeat
        promoted = self._promotions.read()
        listed = list_selected(self._access, lambda topic: topic not in promoted)
        partitions, begins, ends = self._partitions(listed)
        heartbeat_ms = self._heartbeat.read()
        unless_missing(self._progress.catch_up, None)  # Java's mirror has no such topic
        reports = {
            source: report
            for (name, source), report in self._progress.poll().items()
            if name == connector and source in begins
        }
        now = self._now()
        job = self._progress.job_epochs.get(connector)
        stopped_ms = job.written_ms if job is not None and job.stopped else None
        return FlowLook(
            partitions,
            ends,
            self._oldest_s(partitions, begins),
            self._offsets.stored_ms,
            promoted,
            None if heartbeat_ms is None else now - heartbeat_ms / 1000,
            heartbeat.interval_s if heartbeat.emit else float("inf"),
            min((max(0.0, now - report.updated_at) for report in reports.values()), default=None),
            job,
            reports,
            {
                number: (task.load.source_throttled, task.load.target_throttled)
                for (name, number), task in self._progress.tasks.items()
                if name == connector and now - task.updated_at <= _RECENT_S
            },
            None if stopped_ms is None else max(0.0, now - stopped_ms / 1000),
            connector=connector,
            blocked=listed.blocked,
            published=self._progress.troubles,
            waiting=frozenset(each.source for each in listed.plan.waiting),
            refreshes_topics=self._access.source.refresh_topics_interval_s is not None,
        )

    def absent(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Find those that the source does not have. Raises KafkaError."""
        found = offsets_or_errors(self._everything, partitions, LATEST)
        return [partition for partition, offset in found.items() if offset is None]

    def _partitions(
        self, listed: Listed
    ) -> tuple[list[PartitionProgress], Mapping[TopicPartition, int | None], Mapping[TopicPartition, int]]:
        """A report of each partition, the offsets from which they are to be copied, and the source's ends."""
        offsets = self._offsets
        targets = {each.source: each.target_topic for each in (*listed.plan.ready, *listed.plan.waiting)}
        offsets.read(targets)
        # Read later than the positions, so that none of the same log is ahead of them.
        ends = offsets_or_errors(self._everything, targets, LATEST)
        known = {partition: end for partition, end in ends.items() if isinstance(end, int)}
        begins = {partition: offsets.mirrored_to(partition) for partition in targets}
        if self._access.consumer.offset_reset is OffsetReset.EARLIEST:
            not_begun = [partition for partition in known if begins[partition] is None]
            begins |= existing_offsets(self._everything, not_begun, EARLIEST)
        left = offsets.left_to_mirror(known)
        reports = [
            self._report(
                partition,
                targets[partition],
                offsets.mirrored_to(partition),
                lag_of(ends[partition], begins[partition], is_left=partition in left),
            )
            for partition in sorted(targets)
        ]
        return reports, begins, known

    def _report(
        self,
        source: TopicPartition,
        target_topic: str,
        mirrored_to: int | None,
        lag: tuple[int | None, str | None],
    ) -> PartitionProgress:
        records, why = lag
        return PartitionProgress(
            connector=self._access.connector,
            task=0,
            job_epoch=0,
            source=source,
            target_topic=target_topic,
            records=0,
            bytes=0,
            position=mirrored_to - 1 if mirrored_to else None,  # without a record, as tasks report it
            lag=records,
            latency=EMPTY,
            state=PartitionState.RUNNING,
            error=why,
            updated_at=self._now(),
        )

    def _oldest_s(
        self, partitions: Collection[PartitionProgress], begins: Mapping[TopicPartition, int | None]
    ) -> Mapping[TopicPartition, float]:
        behind = {
            each.source: begin
            for each in partitions
            if each.lag and (begin := begins[each.source]) is not None
        }
        oldest_ms, now = _oldest_ms(self._everything, behind), self._now()
        return {partition: max(0.0, now - at / 1000) for partition, at in oldest_ms.items()}


def lag_of(
    end: int | SparkmirrorError | None, begin: int | None, *, is_left: bool
) -> tuple[int | None, str | None]:
    """The lag in records, counted by offsets, or None and why it is not known.

    It is 0 if no record is left to copy, whatever transaction markers are left.
    """
    if end is None:
        return None, ABSENT
    if isinstance(end, SparkmirrorError):
        return None, f"the source's end can't be read: {end}: does the broker that leads it run?"
    if not is_left:
        return 0, None
    if begin is None:
        return None, NOT_BEGUN
    if begin > end:
        return None, AHEAD
    return end - begin, None


def _oldest_ms(
    settings: ConsumerSettings, begins: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    """The timestamp of the first batch with records from each offset on; none where there is none.

    In epoch ms, by the first record of the batch, which may be a little older than that offset's. A few
    requests, since a response holds at most 1 MB. Raises KafkaError.
    """
    found: dict[TopicPartition, int] = {}
    left = dict(begins)
    with closing(PartitionReader(settings, _FETCH_BYTES)) as reader:
        while left:
            responses = [each for each in reader.fetch(left, 0.0) if each.records or each.error]
            for response in responses:
                begin = left.pop(response.partition)
                timestamp_ms = _first_timestamp_ms(response, begin)
                if timestamp_ms is not None:
                    found[response.partition] = timestamp_ms
            if not responses:
                break
    return found


def _first_timestamp_ms(response: FetchedPartition, begin: int) -> int | None:
    for batch in iterate_batches(response.records):
        header = batch.header
        if header.last_offset >= begin and header.record_count and not header.attributes & CONTROL:
            return header.base_timestamp
    return None
