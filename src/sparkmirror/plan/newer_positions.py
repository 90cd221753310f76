"""Finds partitions that another connector of a flow has copied further than this one's positions say.

This happens when a connector gets a new name, its old name back, or another offsets topic. The newest
record counts, so that offsets which users altered or reset are kept. Where the topic of positions was
deleted, the connector's own attempts are what is left. Transactional tasks record no attempts: their former
offsets topics are read.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import UNKNOWN_LOGS, Alias, LogIdentity, TopicPartition
from sparkmirror.domain.incidents import OnNewerPosition
from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.topics import TopicListing
from sparkmirror.kafka.data.topic_log import read_topic
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.source import preserves_offsets
from sparkmirror.settings.topic_selection import Pairs
from sparkmirror.storage.attempts import Stage, owner_of, recorded_attempts
from sparkmirror.storage.cluster_ids import recorded_owners
from sparkmirror.storage.positions import Position, recorded_positions


class Newer(NamedTuple):
    """`owner` has copied the partition up to `end`, this connector up to `own_end`, None without a position.

    Both are the next upstream offsets. `name` is the owner's for people. `is_lost` says that the owner is
    this connector itself: of what its attempts have copied the task knows more.
    """

    owner: str
    name: str
    end: int
    own_end: int | None
    logs: LogIdentity
    is_lost: bool = False

    @property
    def position(self) -> Position:
        return Position(self.end - 1, logs=self.logs)


class _Place(NamedTuple):
    end: int | None
    logs: LogIdentity
    at_ms: int
    positions_id: bytes = b""


@dataclass(slots=True)
class _Places:
    """The newest place of each owner in each partition."""

    of: dict[TopicPartition, dict[str, _Place]] = field(default_factory=dict)

    def add(self, partition: TopicPartition, owner: str, place: _Place) -> None:
        places = self.of.setdefault(partition, {})
        known = places.get(owner)
        if known is None or known.at_ms <= place.at_ms:
            places[owner] = place


def newer_positions(
    on: FlowWorker, connector: ConfiguredSource, pairs: Pairs, source: TopicListing, target: TopicListing
) -> Mapping[TopicPartition, Newer]:
    """Read both topics in which connectors record where they are. Raises KafkaError."""
    preserves = preserves_offsets(connector.settings)
    logs = {
        topic: LogIdentity(source.topics[topic].topic_id, -1, target.topics[remote].topic_id)
        for topic, remote in pairs
        if topic in source.topics and remote in target.topics and not preserves(topic)
    }
    client, positions, alias = on.worker_client, on.worker.offset_topic.name, on.flow.source
    none: list[LogRecord] = []
    stored = _stored(client, positions)
    attempts = unless_missing(lambda: list(read_topic(client, StateTopic.ATTEMPTS.of(alias))), none)
    places = _Places()
    for partition, owner, place in _from_attempts(attempts):
        places.add(partition, owner, place)
    own, beside = owner_of(positions, connector.name), owner_of(positions, "")
    lost = _lost(places, own, b"" if positions not in target.topics else target.topics[positions].topic_id)
    for partition, owner, place in _from_positions(stored, alias, positions):
        places.add(partition, owner, place)
        if owner == own:
            lost.pop(partition, None)
    names = {connector.name, *(name for name, *_ in recorded_positions(stored, alias))}
    for topic in _former_topics(recorded_owners(attempts), names) & target.topics.keys() - {positions}:
        for partition, owner, place in _from_positions(_stored(client, topic), alias, topic):
            places.add(partition, owner, place)
    copied = {at: of for at, of in places.of.items() if at.topic in logs}
    found = {at: newer for at, of in copied.items() if (newer := _newer(of, own, logs[at.topic])) is not None}
    found |= {
        at: Newer(own, own, end, None, logs[at.topic], is_lost=True)
        for at, (end, known, *_) in lost.items()
        if at in copied and at not in found and end is not None and known.are_known_as(logs[at.topic])
    }
    return {at: newer._replace(name=newer.owner.removeprefix(beside)) for at, newer in found.items()}


def _stored(client: ConnectionSettings, topic: str) -> list[LogRecord]:
    none: list[LogRecord] = []
    return unless_missing(lambda: list(read_topic(client, topic, read_committed=True)), none)


def _former_topics(owners: Iterable[str], names: Collection[str]) -> set[str]:
    """Return the offsets topics of these owners of attempts, as far as they are connectors of these names."""
    return {
        owner.removesuffix(end) for owner in owners for name in names if owner.endswith(end := f"-{name}")
    }


def predecessor(newer: Mapping[TopicPartition, Newer]) -> str | None:
    """The owner that has copied most partitions further; None where no other has."""
    owners = Counter(each.owner for each in newer.values() if not each.is_lost)
    return owners.most_common(1)[0][0] if owners else None


class NewerText(NamedTuple):
    """Says in one line who has copied `topics` further and what follows; and how to get the other."""

    topics: str
    why: str
    remedy: str


def newer_texts(newer: Mapping[TopicPartition, Newer], reaction: OnNewerPosition) -> Iterator[NewerText]:
    """Tell what is lost, and what others have copied."""
    lost = {at: each for at, each in newer.items() if each.is_lost}
    others = {at: each for at, each in newer.items() if not each.is_lost}
    if lost:
        yield _text_of_lost(lost, reaction)
    if others:
        yield _text_of_others(others, reaction)


def _text_of_lost(newer: Mapping[TopicPartition, Newer], reaction: OnNewerPosition) -> NewerText:
    topics = some_of(sorted({at.topic for at in newer}))
    why = f"the positions of {topics} are lost with their topic, which was deleted"
    if reaction is OnNewerPosition.CONTINUE:
        remedy = "set on.newer.position to repeat to copy them again"
        return NewerText(topics, f"{why}: copying continues where the last attempts ended", remedy)
    remedy = "set on.newer.position to continue to continue where the last attempts ended"
    return NewerText(topics, f"{why}: what was copied comes a second time", remedy)


def _text_of_others(newer: Mapping[TopicPartition, Newer], reaction: OnNewerPosition) -> NewerText:
    owners = some_of(sorted({each.name for each in newer.values()}))
    topics = some_of(sorted({at.topic for at in newer}))
    count = sum(each.end - (each.own_end or 0) for each in newer.values())
    further = f"{owners} has copied {topics} since, {count:,} offsets further than this connector"
    if reaction is OnNewerPosition.CONTINUE:
        remedy = "set on.newer.position to repeat to copy them again"
        return NewerText(topics, f"{further}, which continues there", remedy)
    remedy = "set on.newer.position to continue to continue behind them"
    return NewerText(topics, f"{further}: they come a second time", remedy)


def _newer(places: Mapping[str, _Place], own: str, logs: LogIdentity) -> Newer | None:
    mine = places.get(own)
    others = [
        (place.end, owner, place)
        for owner, place in places.items()
        if owner != own
        and place.end is not None
        and place.logs.are_known_as(logs)
        and (mine is None or place.at_ms > mine.at_ms)
    ]
    if not others:
        return None
    end, owner, _ = max(others, key=lambda each: each[0])
    own_end = None if mine is None else mine.end
    return Newer(owner, owner, end, own_end, logs) if own_end is None or end > own_end else None


def _lost(places: _Places, own: str, positions_id: bytes) -> dict[TopicPartition, _Place]:
    """The places of own attempts whose positions were in another topic of this name."""
    mine = {at: of[own] for at, of in places.of.items() if own in of}
    return {at: place for at, place in mine.items() if place.positions_id not in (b"", positions_id)}


def _from_attempts(records: Iterable[LogRecord]) -> Iterator[tuple[TopicPartition, str, _Place]]:
    for owner, partition, attempt, at_ms in recorded_attempts(records):
        if attempt.stage is not Stage.CLAIMED and attempt.ends:
            end = attempt.recorded_end.end.offset
            yield partition, owner, _Place(end, attempt.logs, at_ms, attempt.positions_id)


def _from_positions(
    records: Iterable[LogRecord], source: Alias, topic: str
) -> Iterator[tuple[TopicPartition, str, _Place]]:
    for name, partition, position, at_ms in recorded_positions(records, source):
        end = None if position is None else position.offset + 1
        logs = UNKNOWN_LOGS if position is None else position.logs
        yield partition, owner_of(topic, name), _Place(end, logs, at_ms)
