"""Makes copies of a flow the originals: surveys both clusters, ends the flow for topics, moves their groups.

The step that is due follows from a survey (`promotion_steps`). The promotion itself is a record in the
migrations topic, which the flow's driver and its attempts read (`storage/promotions.py`).
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Self

from sparkmirror.batches.filler import is_filler
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.migrate.migrations_log import MigrationsLog
from sparkmirror.migrate.moves.group_move_steps import GroupMove
from sparkmirror.migrate.moves.producers import ProducerMigration
from sparkmirror.migrate.moves.topic_drain_steps import HeartbeatsSeen, TopicsDrain
from sparkmirror.migrate.promote.last_fence import LastFence
from sparkmirror.migrate.promote.parted_logs import first_missing
from sparkmirror.migrate.promote.promoted_groups import PromotedGroups
from sparkmirror.migrate.promote.promotion_steps import Ends, PromotionRollback, TopicsPromotion
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.settings.topic_selection import remote_topic, should_replicate
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import FlowOffsets, existing_offsets, with_records
from sparkmirror.status.mirrored_partitions import mirrored_partitions
from sparkmirror.storage.attempts import fencing_id
from sparkmirror.storage.positions import read_all_positions
from sparkmirror.storage.promotions import (
    Parting,
    Promotion,
    Promotions,
    Stage,
    promotion_record,
    read_promotions,
)

Refused = Mapping[TopicPartition, KafkaError]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The topics to promote: whole names on the source, as patterns, and as these were given."""

    matches: Callable[[str], object]
    patterns: Sequence[str]

    @classmethod
    def of(cls, patterns: Sequence[str], option: str) -> Self:
        """Raises ConfigError, which names the option."""
        return cls(compile_list(patterns, option).fullmatch, patterns)


class TopicPromotion:
    """Plans and applies the promotion of selected topics of one flow.

    Not thread-safe. Every method blocks and raises KafkaError.
    """

    def __init__(
        self,
        access: FlowAccess,
        wanted: Wanted,
        still_for_s: float,
        *,
        stops_at_now: bool = False,
        is_source_gone: bool = False,
    ) -> None:
        """Prepare a promotion. If `source` is None, nothing is requested from the source cluster."""
        self._is_source_gone = is_source_gone
        self._access = access
        self._wanted = wanted
        self._stops_at_now = stops_at_now
        self._owner = access.owner
        self._promotions: Promotions = {}
        self._offsets = FlowOffsets(replace(access, checkpoint=None))  # positions alone, of the target
        self._drain = ProducerMigration(
            access, self._is_left, still_for_s, wanted.patterns, stops_at_now=stops_at_now
        )
        self._preserved: Collection[str] = ()
        self._begun: set[TopicPartition] = set()
        """Whose target's log is known to begin with records of the source."""
        self._moves: Sequence[GroupMove] | None = None
        self._log = MigrationsLog.of(access)

    def close(self) -> None:
        self._drain.close()
        self._offsets.close()

    # the survey

    def survey(self) -> TopicsPromotion:
        access = self._access
        self._promotions = read_promotions(access.positions, access.flow.source, self._owner)
        found = self._partitions()
        partitions = [each for each in found if each.preserves_offsets]
        self._preserved = {each.source.topic for each in partitions}
        drain = self._nothing() if self._is_source_gone else self._drain.survey()
        ends = self._ends(partitions)  # read later: no end of the target is ahead of its source's
        self._offsets.read([each.source for each in partitions])
        promotion = TopicsPromotion(
            flow=access.flow,
            partitions=partitions,
            promotions={
                topic: self._promotions[topic] for topic in self._preserved & self._promotions.keys()
            },
            ends=ends,
            drain=drain,
            others=sorted({each.source.topic for each in found} - self._preserved),
            translated=[each.source for each in partitions if self._offsets.is_translated(each.source)],
            stops_at_now=self._stops_at_now,
            is_source_gone=self._is_source_gone,
            obstacle=None if partitions else self._no_topic(found),
        )
        return replace(
            promotion,
            filled=self._filled(promotion),
            longer=self._longer(promotion),
            ended=self._ended(promotion),
            moves=self._moved(promotion),
        )

    def _partitions(self) -> Sequence[CopyPartition]:
        """Return the partitions that the source has, or those that the mirror has copied from it."""
        access, source = self._access, self._access.source
        if not self._is_source_gone:
            return mirrored_partitions(access, self._wanted.matches)
        preserves = preserves_offsets(source)
        known = read_all_positions(
            access.positions, access.positions_topic, access.connector, access.flow.source
        )
        return [
            CopyPartition(at, remote_topic(source, at.topic), preserves_offsets=preserves(at.topic))
            for at in sorted(known)
            if self._wanted.matches(at.topic) and should_replicate(source, at.topic)
        ]

    def _nothing(self) -> TopicsDrain:
        beats = HeartbeatsSeen(float("inf"), None, None, now_ms=0, waited_s=0.0)
        return TopicsDrain(self._access.flow, (), beats, still_s=0.0, still_for_s=0.0)

    def _is_left(self, topic: str) -> bool:
        promotion = self._promotions.get(topic)
        return topic in self._preserved and (promotion is None or promotion.stage is not Stage.PROMOTED)

    def _no_topic(self, found: Sequence[CopyPartition]) -> str:
        flow, names = self._access.flow, " or ".join(self._wanted.patterns)
        if found:
            return (
                f"no topic like {names} has preserved offsets in {flow} (offsets.preserve): "
                "sparkmirror migrate moves its producers and consumers"
            )
        return f"no topic that {flow} mirrors has a name like {names} on {flow.source}"

    def _ends(self, partitions: Sequence[CopyPartition]) -> Mapping[TopicPartition, Ends]:
        target = existing_offsets(
            ConsumerSettings(self._access.target_admin), [each.target for each in partitions], LATEST
        )
        everything = ConsumerSettings(self._access.consumer.connection)
        asked = [] if self._is_source_gone else [each.source for each in partitions]
        source = existing_offsets(everything, asked, LATEST)
        return {each.source: Ends(source.get(each.source), target[each.target]) for each in partitions}

    def _filled(self, promotion: TopicsPromotion) -> list[TopicPartition]:
        """The target partitions that begin with filler, which consumers would see."""
        unknown = [each.target for each in promotion.left if each.target not in self._begun]
        settings = ConsumerSettings(self._access.target_admin)
        starts = {
            at: start
            for at, start in existing_offsets(settings, unknown, EARLIEST).items()
            if start is not None
        }
        filled = []
        with closing(SpanReader(settings)) as reader:
            reader.expect(starts)
            for at, start in starts.items():
                if any(is_filler(batch) for batch in reader.read(at, start, start + 1, 1)):
                    filled.append(at)
                else:
                    self._begun.add(at)
        return filled

    def _longer(self, promotion: TopicsPromotion) -> list[TopicPartition]:
        if self._is_source_gone:
            return []
        beyond: dict[TopicPartition, tuple[int, int]] = {}
        of_target = {each.target: each.source for each in promotion.left}
        for target, source in of_target.items():
            ends = promotion.ends[source]
            if (ends.target or 0) > (ends.source or 0):
                beyond[target] = (ends.source or 0, ends.target or 0)
        found = with_records(ConsumerSettings(self._access.target_admin), beyond)
        return sorted(of_target[target] for target in found)

    def _ended(self, promotion: TopicsPromotion) -> Collection[TopicPartition]:
        """The promoted partitions whose source got an end of a transaction since, and no record."""
        behind: dict[TopicPartition, tuple[int, int]] = {}
        for at, ends in promotion.ends.items():
            parting = promotion.parting(at)
            if parting is not None and ends.source is not None and ends.source > parting.offset:
                behind[at] = parting.offset, ends.source
        return behind.keys() - with_records(self._access.consumer, behind)

    # the groups

    def _moved(self, promotion: TopicsPromotion) -> Sequence[GroupMove] | None:
        """Surveyed for the plan, and then behind the switch: there may be thousands."""
        if self._is_source_gone:
            return None
        if promotion.partitions and (self._moves is None or not promotion.left):
            groups = self._groups()
            self._moves = None if groups is None else groups.moves()
        return self._moves

    def _groups(self) -> PromotedGroups | None:
        checkpoint = self._access.checkpoint
        return None if checkpoint is None else PromotedGroups(self._access, checkpoint, self._preserved)

    # the switch

    def apply(self, promotion: TopicsPromotion) -> Refused:
        """Do what is due; return what was refused."""
        if promotion.left:
            return self._switch(promotion)
        groups = self._groups()
        return {} if groups is None else groups.write(promotion.to_write)

    def _switch(self, promotion: TopicsPromotion) -> Refused:
        topics = sorted({each.source.topic for each in promotion.left})
        self._log.ensure()
        new = [topic for topic in topics if promotion.stage(topic) is None]
        names = {each.source.topic: each.target_topic for each in promotion.left}
        self._write(Stage.STOPPING, {topic: names[topic] for topic in new}, {})
        leaves = self._stops_at_now or self._is_source_gone
        written = {} if leaves else self._written_since(promotion)
        stopping = [topic for topic in topics if promotion.stage(topic) is not Stage.SWITCHING]
        if written:
            self._log.write([promotion_record(self._owner, topic, None) for topic in stopping])
            return written
        self._write(Stage.SWITCHING, {topic: names[topic] for topic in stopping}, {})
        return self._fence(promotion)

    def _written_since(self, promotion: TopicsPromotion) -> Refused:
        """Records of the source that the flow has not copied and won't copy any more."""
        left = [each for each in promotion.left if promotion.stage(each.source.topic) is not Stage.SWITCHING]
        found = with_records(self._access.consumer, _gaps(left, self._ends(left)))
        text = (
            "records were written to it meanwhile: the flow continues. Stop the producers, and run this again"
        )
        return {at: KafkaError(f"{at}: {text}") for at in found}

    def _fence(self, promotion: TopicsPromotion) -> Refused:
        left = promotion.left
        ends = self._ends(left)
        gaps = _gaps(left, ends)
        whole = gaps.keys() - self._first_missing([each for each in left if each.source in gaps]).keys()
        ids = {each.source: fencing_id(self._owner, self._access.flow.source, each.source) for each in left}
        fenced = LastFence(self._access.producer, ids).end(left, {at: gaps[at][1] for at in whole})
        refused = {
            at: error if isinstance(error, KafkaError) else KafkaError(str(error))
            for at, error in fenced.items()
            if isinstance(error, SparkmirrorError)
        }
        partings: dict[str, dict[int, Parting]] = {}
        ends = self._ends(left)  # again: the flow may have copied what was written meanwhile
        missing = self._first_missing([each for each in left if ends[each.source].source is not None])
        for at, offset in fenced.items():
            if isinstance(offset, int):
                end = ends[at].source
                parted = offset if end is None else min(offset, end, missing.get(at, offset))
                partings.setdefault(at.topic, {})[at.partition] = Parting(parted, end)
        failed = {at.topic for at in refused}
        done = {topic: each for topic, each in partings.items() if topic not in failed}
        names = {each.source.topic: each.target_topic for each in left}
        self._write(Stage.PROMOTED, {topic: names[topic] for topic in done}, done)
        return refused

    def _first_missing(self, left: Sequence[CopyPartition]) -> Mapping[TopicPartition, int]:
        """Return the first record of each source partition that the target lacks, of those that have one."""
        copies = {each.source: each.target for each in left}
        return first_missing(self._access.consumer, ConsumerSettings(self._access.target_admin), copies)

    def _write(
        self, stage: Stage, topics: Mapping[str, str], partings: Mapping[str, Mapping[int, Parting]]
    ) -> None:
        """`topics` have their names on the target. Acknowledged by all replicas when this returns."""
        ids = read_metadata(self._access.target_admin, topics.values()).topic_ids if topics else {}
        now_ms = int(time.time() * 1000)
        promotions = {
            topic: Promotion(stage, now_ms, ids.get(remote, b""), partings.get(topic, {}))
            for topic, remote in topics.items()
        }
        self._log.write([promotion_record(self._owner, topic, each) for topic, each in promotions.items()])

    # the roll-back

    def survey_rollback(self) -> PromotionRollback:
        access = self._access
        known = read_promotions(access.positions, access.flow.source, self._owner)
        promotions = {topic: each for topic, each in known.items() if self._wanted.matches(topic)}
        remote = {topic: remote_topic(access.source, topic) for topic in promotions}
        metadata = read_metadata(access.target_admin, set(remote.values())) if remote else None
        gone = [
            topic
            for topic, each in promotions.items()
            if metadata is not None
            and (
                remote[topic] not in metadata.partitions
                or is_another(each.target_id, metadata.topic_ids.get(remote[topic], b""))
            )
        ]
        return PromotionRollback(access.flow, promotions, gone)

    def undo(self, rollback: PromotionRollback) -> Refused:
        self._log.write([promotion_record(self._owner, topic, None) for topic in rollback.to_undo])
        return {}


def _gaps(
    partitions: Sequence[CopyPartition], ends: Mapping[TopicPartition, Ends]
) -> Mapping[TopicPartition, tuple[int, int]]:
    """Return, by source partition, the offsets between the end of its target and its own."""
    return {
        each.source: (ends[each.source].target or 0, ends[each.source].source or 0)
        for each in partitions
        if (ends[each.source].target or 0) < (ends[each.source].source or 0)
    }
