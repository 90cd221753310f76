"""Computes how far a flow is behind from Kafka alone: the source's end offsets, positions, offset syncs.

So it is told of any mirror, Java's too, and of one that does not run. Java stores a position once a minute.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import FlowOffsets, existing_offsets, offsets_or_errors
from sparkmirror.status.mirrored_partitions import mirrored_partitions
from sparkmirror.status.oldest_records import oldest_records_ms
from sparkmirror.storage.promotions import Promotions

NOT_BEGUN = "not begun, and auto.offset.reset decides where it begins"
AHEAD = "its position is beyond the source's end: the topic was created again, or truncated"
ABSENT = "the source has no such partition now"


class PartitionLag(NamedTuple):
    """`end` and `mirrored_to`, the next offset to be copied, are the source's; None where unknown.

    `records` are counted by offsets; 0 where only transaction markers are left; None where that can't be
    told, and `why` tells the reason. Else `why` is the mirror's own error, if it reports one.
    """

    source: TopicPartition
    end: int | None
    mirrored_to: int | None
    records: int | None
    why: str | None = None
    seconds: float | None = None
    """The age of the oldest record that is not copied; None where it is not asked for, or can't be told."""
    target_topic: str = ""


class LagLimit(NamedTuple):
    """A partition is as good as caught up when it keeps one of them; `seconds` is None for no such limit.

    Where the mirror reports an error, nothing tells that its records are on their way: only `records` count.
    """

    records: int = 0
    seconds: float | None = None

    def is_kept(self, lag: PartitionLag) -> bool:
        """Of a partition whose lag is known."""
        if lag.records is not None and lag.records <= self.records:
            return True
        if self.seconds is None or lag.seconds is None or lag.why is not None:
            return False
        return lag.seconds <= self.seconds


@dataclass(frozen=True, slots=True)
class FlowLag:
    """`stored_ms` is when the last position was stored, in epoch ms; None without any.

    `why` tells why there are no partitions, where it is not because no topic is wanted. Of `promoted` topics
    nothing is copied any more, so they have no lag.
    """

    flow: Flow
    partitions: Sequence[PartitionLag]
    stored_ms: int | None = None
    why: str | None = None
    promoted: Promotions = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Of those partitions whose lag is known."""
        return sum(each.records or 0 for each in self.partitions)

    @property
    def unknown(self) -> list[PartitionLag]:
        return [each for each in self.partitions if each.records is None]

    def beyond(self, limit: LagLimit) -> list[PartitionLag]:
        """The partitions that are further behind than that, the worst first."""
        behind = [each for each in self.partitions if each.records is not None and not limit.is_kept(each)]
        return sorted(behind, key=lambda each: (-(each.records or 0), each.source))


class LagReader:
    """Of the topics whose names on the source are wanted. One owner, who closes it.

    What one look has read of the offset syncs serves the next.
    """

    def __init__(
        self,
        access: FlowAccess,
        is_wanted: Callable[[str], object],
        *,
        reads_ages: bool = False,
        reads_errors: bool = True,
    ) -> None:
        """`reads_ages`: one more request to find how old the oldest record is that is not copied.

        `reads_errors`: the mirror's own errors are read from the reports of its tasks.
        """
        self._access = access
        self._reads_ages = reads_ages
        self._reads_errors = reads_errors
        self._is_wanted = is_wanted
        self._offsets = FlowOffsets(access)
        self._promotions = access.promotions_reader()

    def close(self) -> None:
        self._offsets.close()

    def read(self) -> FlowLag:
        """Raises KafkaError."""
        offsets = self._offsets
        every = self._promotions.read()
        promoted = {topic: each for topic, each in every.items() if self._is_wanted(topic)}
        mirrored = {
            each.source: each.target_topic
            for each in mirrored_partitions(self._access, self._is_wanted)
            if each.source.topic not in promoted
        }
        sources = list(mirrored)
        offsets.read(sources)
        everything = ConsumerSettings(self._access.consumer.connection)
        # Read later than the positions, so that none of the same log is ahead of them.
        ends = offsets_or_errors(everything, sources, LATEST)
        known = {partition: end for partition, end in ends.items() if isinstance(end, int)}
        begins = {partition: offsets.mirrored_to(partition) for partition in sources}
        if self._access.consumer.offset_reset is OffsetReset.EARLIEST:
            not_begun = [partition for partition in known if begins[partition] is None]
            begins |= existing_offsets(everything, not_begun, EARLIEST)
        left = offsets.left_to_mirror(known)
        errors = offsets.errors() if left and self._reads_errors else {}
        found = []
        for partition in sorted(sources):
            end = known.get(partition)
            records, why = _lag(ends[partition], begins[partition], is_left=partition in left)
            mirrored_to = offsets.mirrored_to(partition)
            why = why or errors.get(partition)
            target = mirrored[partition]
            found.append(PartitionLag(partition, end, mirrored_to, records, why, target_topic=target))
        if self._reads_ages:
            found = self._with_ages(found, begins)
        return FlowLag(self._access.flow, found, offsets.stored_ms, promoted=promoted)

    def _with_ages(
        self, found: Sequence[PartitionLag], begins: Mapping[TopicPartition, int | None]
    ) -> list[PartitionLag]:
        behind = {
            each.source: begin
            for each in found
            if each.records and (begin := begins[each.source]) is not None
        }
        oldest_ms = oldest_records_ms(ConsumerSettings(self._access.consumer.connection), behind)
        now_ms = time.time() * 1000
        return [
            each._replace(seconds=max(0.0, now_ms - oldest_ms[each.source]) / 1000)
            if each.source in oldest_ms
            else each
            for each in found
        ]


def _lag(
    end: int | SparkmirrorError | None, begin: int | None, *, is_left: bool
) -> tuple[int | None, str | None]:
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
