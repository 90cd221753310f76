"""Deletes topics of the target whose source topic was deleted, where settings ask for that."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sparkmirror.batches.cycles import names_show_origin
from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.topics import ListedTopic, TopicListing
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.wire.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.source import TopicDeletes
from sparkmirror.settings.topic_selection import remote_topic, should_replicate
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_delete_plan import (
    NAMES_KEPT,
    Absence,
    Copied,
    DeletePlan,
    DeleteTopic,
    GracePeriod,
    Missed,
    Sight,
    absent,
    plan_deletes,
)
from sparkmirror.setup.topic_plan import TopicNote
from sparkmirror.storage.owned_records import read_owned
from sparkmirror.storage.positions import NOTHING_REPLICATED, Position, read_all_positions

_CHECKS_IN_GRACE = 10
"""The fewest checks of a missing topic within the grace period."""
_CHECK_INTERVAL_MIN_S = 60.0
_GAP_MIN_S = 600.0
_REFRESHES_IN_GAP = 3
"""A mirror that was down for a short while, or whose refresh failed, continues its grace periods."""


@dataclass(frozen=True, slots=True)
class _Seen:
    source: TopicListing
    target: TopicListing
    plan: DeletePlan
    check_again: float
    """Epoch seconds."""


class TopicDeleteSync:
    """Plans and applies deletions. It sends no request while no topic is missing."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        admins: FlowAdmins,
        log: FlowLog,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._on = on
        self._connector = connector
        self._settings = connector.settings
        self._admins = admins
        self._log = log
        self._now = now
        self._seen: _Seen | None = None
        self._copied: Collection[Copied] = ()
        self._stored: Mapping[str, Missed] | None = None
        self._writer = TopicWriter(on.worker_client)
        grace_s = self._settings.topic_deletes_grace_s
        refresh_s = self._settings.refresh_topics_interval_s or 0.0
        self._grace = GracePeriod(grace_s, max(grace_s, _GAP_MIN_S, _REFRESHES_IN_GAP * refresh_s))

    def plan(self, source: TopicListing, target: TopicListing) -> DeletePlan:
        """Reads only; the same object as before while nothing has changed or is due. Raises KafkaError."""
        seen, now = self._seen, self._now()
        is_new = seen is None or seen.source is not source or seen.target is not target
        if seen is not None and not is_new and now < seen.check_again:
            return seen.plan
        if seen is None or now >= seen.check_again or not seen.source.topics.keys() <= source.topics.keys():
            self._copied = list(self._read_copied(target))
        listed = source.counts
        missing = absent(self._copied, listed, target.topics)
        sight = Sight(now, listed, target.topics, self._absences(missing))
        plan = plan_deletes(self._copied, sight, self._missed(target), self._grace)
        if not self._settings.names_show_origin:
            plan = replace(plan, held=NAMES_KEPT)
        self._seen = _Seen(source, target, plan, self._check_again(plan, now) if missing else float("inf"))
        return plan

    def apply(self) -> None:
        """Store which topics the last plan found missing, then delete what is due. Raises KafkaError."""
        if self._seen is None:
            return
        plan = self._seen.plan
        self._store(plan.missed)
        due = plan.due(self._now())
        if self._settings.topic_deletes is TopicDeletes.YES and due:
            self._delete(due)

    def notes(self, plan: DeletePlan) -> Iterator[TopicNote]:
        """Notes about topics that are gone: what becomes of their copies, and when."""
        is_dry = self._settings.topic_deletes is TopicDeletes.DRY_RUN
        for topic in plan.deletes:
            when = datetime.fromtimestamp(topic.due, UTC).isoformat(" ", "seconds")
            deed = "would be deleted" if is_dry else "is deleted unless that comes back"
            text = f"{topic.source} is gone from the source; its copy {deed} after {when}"
            yield TopicNote(topic.name, topic.source, text)
        for source, reason in plan.reasons.items():
            remote = remote_topic(self._settings, source)
            yield TopicNote(remote, source, f"{source} is not listed at the source; its copy stays: {reason}")

    def close(self) -> None:
        self._writer.close()

    def _read_copied(self, target: TopicListing) -> Iterator[Copied]:
        """The topics with stored positions that are still mirrored, without MM2's own."""
        settings, topic = self._settings, self._on.worker.offset_topic.name
        if topic not in target.topics:
            return
        positions = read_all_positions(
            self._on.worker_client, topic, self._connector.name, settings.flow.source
        )
        of_topics: dict[str, list[Position]] = {}
        for partition, position in positions.items():
            of_topics.setdefault(partition.topic, []).append(position)
        for source, found in of_topics.items():
            if should_replicate(settings, source) and not settings.policy.is_heartbeats_topic(source):
                yield Copied(
                    source,
                    remote_topic(settings, source),
                    _target_id(found),
                    shows_origin=names_show_origin(settings.policy, settings.flow.source, source),
                )

    def _missed(self, target: TopicListing) -> Mapping[str, Missed]:
        if self._stored is None:
            topic = StateTopic.PROGRESS.of(self._on.flow.source)
            is_there = topic in target.topics
            self._stored = (
                read_missed(self._on.worker_client, topic, self._connector.name) if is_there else {}
            )
        return self._stored

    def _absences(self, topics: Collection[str]) -> Mapping[str, Absence]:
        return {topic: _absence(found) for topic, found in self._admins.source.named(topics).items()}

    def _check_again(self, plan: DeletePlan, now: float) -> float:
        often_s = max(self._grace.grace_s / _CHECKS_IN_GRACE, _CHECK_INTERVAL_MIN_S)
        return min([now + often_s, *(topic.due for topic in plan.deletes if topic.due > now)])

    def _store(self, missed: Mapping[str, Missed]) -> None:
        stored = self._stored or {}
        name = self._connector.name
        news = [missed_record(name, topic, one) for topic, one in missed.items() if stored.get(topic) != one]
        news += [missed_record(name, topic, None) for topic in stored if topic not in missed]
        if news:
            self._writer.write(StateTopic.PROGRESS.of(self._on.flow.source), news)
        self._stored = dict(missed)

    def _delete(self, due: Collection[DeleteTopic]) -> None:
        sources = {topic.name: topic.source for topic in due}
        deleted = self._admins.writes.delete_topics({topic.name: topic.topic_id for topic in due})
        for name, error in deleted.items():
            if error is None:
                self._log.info("deleted %s: %s is gone from the source", name, sources[name])
            else:
                self._log.warning("%s", error)


def _target_id(positions: Collection[Position]) -> bytes:
    """The id of the one topic that they name; empty when nothing was copied, or they name several."""
    ids = {position.logs.target_id for position in positions}
    copied = any(position.offset > NOTHING_REPLICATED for position in positions)
    return ids.pop() if copied and len(ids) == 1 else b""


def _absence(found: ListedTopic) -> Absence:
    match found.error:
        case code if code == UNKNOWN_TOPIC_OR_PARTITION:
            return Absence.UNKNOWN
        case code if code == TOPIC_AUTHORIZATION_FAILED:
            return Absence.HIDDEN
        case _:
            return Absence.UNCLEAR


_MISSED = "missed"


def missed_record(connector: ConnectorName, topic: str, missed: Missed | None) -> LogRecord:
    """The record in the progress topic since when a topic is missing, so that no restart forgets it.

    None makes a tombstone: the topic is listed again.
    """
    value = None if missed is None else compact_json(missed._asdict())
    return LogRecord(compact_json([_MISSED, connector, topic]), value)


def parse_missed(record: LogRecord) -> tuple[ConnectorName, str, Missed | None] | None:
    """The connector, the topic and its absence; None for another kind of record."""
    try:
        match parsed_json(record.key):
            case [kind, str(connector), str(topic)] if kind == _MISSED:
                if record.value is None:
                    return ConnectorName(connector), topic, None
                stored = parsed_json(record.value)
                missed = Missed(float(stored["since"]), float(stored["seen_missing"]))
                return ConnectorName(connector), topic, missed
    except (ValueError, TypeError, KeyError):
        pass
    return None


def read_missed(settings: ConnectionSettings, topic: str, connector: ConnectorName) -> Mapping[str, Missed]:
    """`topic` is the progress topic. Raises KafkaError, also where it doesn't exist."""
    return read_owned(settings, topic, connector, parse_missed)
