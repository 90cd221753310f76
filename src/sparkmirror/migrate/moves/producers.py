"""Surveys topics of a flow until their producers can continue on the target. Writes nothing.

The step that is due follows from a survey of both clusters (`topic_drain_steps`).
"""

import time
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST
from sparkmirror.migrate.moves.topic_drain_steps import (
    HeartbeatsSeen,
    PartitionDrain,
    TopicsDrain,
    UnchangedEnds,
)
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import FlowOffsets, Translation, existing_offsets
from sparkmirror.status.last_heartbeat import LastHeartbeat
from sparkmirror.status.mirrored_partitions import mirrored_partitions


class ProducerMigration:
    """A flow's topics that are wanted. One owner. Every method raises KafkaError."""

    def __init__(
        self,
        access: FlowAccess,
        is_wanted: Callable[[str], object],
        still_for_s: float,
        wanted: Sequence[str],
        *,
        stops_at_now: bool = False,
    ) -> None:
        """`wanted` are the topics' patterns as they were given, for errors.

        With `stops_at_now`, what is written after the first survey need not be on the target.
        """
        self._access = access
        self._is_wanted = is_wanted
        self._wanted = wanted
        self._still_for_s = still_for_s
        self._stops_at_now = stops_at_now
        self._first_ends: dict[TopicPartition, int] = {}
        self._ends = UnchangedEnds()
        self._offsets = FlowOffsets(access)
        self._heartbeat = LastHeartbeat(access)
        self._first_heartbeat_ms: int | None = None
        self._first_survey_at: float | None = None

    def close(self) -> None:
        self._offsets.close()
        self._heartbeat.close()

    def survey(self) -> TopicsDrain:
        """The state of the topics on both clusters."""
        plan = mirrored_partitions(self._access, self._is_wanted)
        sources = [each.source for each in plan]
        self._offsets.read(sources)
        ends = self._source_ends(sources)  # read later: no position of the same log is ahead of them
        still_s = self._ends.observe(ends, time.monotonic())
        if self._stops_at_now:
            ends = self._until_now(ends)
        left = self._offsets.left_to_mirror(ends)
        translations = self._offsets.translate(ends)
        target_ends = existing_offsets(self._access.target_consumer, [each.target for each in plan], LATEST)
        errors = self._offsets.errors() if left else {}
        return TopicsDrain(
            flow=self._access.flow,
            partitions=[
                PartitionDrain(
                    source=each.source,
                    target=each.target,
                    source_end=ends[each.source],
                    mirrored_to=self._offsets.mirrored_to(each.source),
                    is_drained=each.source not in left,
                    target_next=_next(each, translations, target_ends),
                    target_end=target_ends[each.target],
                    error=errors.get(each.source),
                )
                for each in plan
            ],
            heartbeats=self._heartbeats_seen(),
            still_s=still_s,
            still_for_s=self._still_for_s,
            changed=self._ends.changed,
            obstacle=None if plan else self._no_topic(),
        )

    def _no_topic(self) -> str:
        flow = self._access.flow
        return f"no topic that {flow} mirrors has a name like {' or '.join(self._wanted)} on {flow.source}"

    def _until_now(self, ends: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The ends at the first survey, or where the mirror is, which has gone on."""
        self._first_ends = {**ends, **self._first_ends}
        return {
            partition: min(end, max(self._first_ends[partition], self._offsets.mirrored_to(partition) or 0))
            for partition, end in ends.items()
        }

    def _source_ends(self, sources: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        """High watermarks: records of open transactions count as written."""
        everything = ConsumerSettings(self._access.consumer.connection)
        found = existing_offsets(everything, sources, LATEST)
        return {partition: end for partition, end in found.items() if end is not None}

    def _heartbeats_seen(self) -> HeartbeatsSeen:
        now, last_ms = time.monotonic(), self._heartbeat.read()
        if self._first_survey_at is None:
            self._first_survey_at = now
            self._first_heartbeat_ms = last_ms
        return HeartbeatsSeen(
            interval_s=self._access.heartbeat.interval_s,
            first_ms=self._first_heartbeat_ms,
            last_ms=last_ms,
            now_ms=int(time.time() * 1000),
            waited_s=now - self._first_survey_at,
        )


def _next(
    each: CopyPartition,
    translations: Mapping[TopicPartition, Translation],
    target_ends: Mapping[TopicPartition, int | None],
) -> int | None:
    """The target offset of the record that is written to the source next; 0 on a target without records."""
    found = translations[each.source].offset
    return 0 if found is None and target_ends[each.target] == 0 else found
