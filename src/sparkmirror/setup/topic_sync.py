"""Creates and grows topics on the target as the source's topics require."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.quantities import counted
from sparkmirror.domain.topics import NO_TOPICS, TopicListing
from sparkmirror.domain.troubles import Trouble, TroubleWord
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.settings.source import MirrorSourceSettings, TopicDeletes
from sparkmirror.settings.topic_selection import NOTHING_SELECTED, Pairs, Selected, Selection, own_copies_text
from sparkmirror.setup.config_troubles import failed_configs
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.refused_configs import TopicCreations, created_without
from sparkmirror.setup.topic_delete_plan import DeletePlan
from sparkmirror.setup.topic_delete_sync import TopicDeleteSync
from sparkmirror.setup.topic_plan import (
    GrowTopic,
    NewTopic,
    SourceTopic,
    TopicPlan,
    missing_topics,
    plan_topics,
)
from sparkmirror.setup.topic_troubles import blocked, is_done, refused, untold

_RETRY_S: Final = 30.0
"""The delay before failed changes are retried while nothing changes."""
_THROTTLED_RETRY_S: Final = 2.0
_TOGETHER_S: Final = 10.0
_NEVER: Final = float("inf")
_SHOWN_AFTER_S: Final = 60.0
"""After this time brokers list new topics: the log of each new partition takes some milliseconds."""
_LINES_MAX: Final = 20
"""The most topics that are logged in lines of their own."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of both sides as they were seen, and what the target's lack."""

    source: Mapping[str, SourceTopic]
    target: Mapping[str, int]
    plan: TopicPlan
    selected: Selected = NOTHING_SELECTED
    """The mirrored topics with their names on the target, and those that can't be mirrored."""
    listing: TopicListing = NO_TOPICS
    """The source's listing that all of this follows from: a later one may have topics beyond `selected`."""
    untold: Mapping[str, KafkaError] = field(default_factory=dict)
    """The topics that are not created since their configs can't be read."""

    @property
    def pairs(self) -> Pairs:
        return self.selected.pairs

    @property
    def gone(self) -> int:
        """The number of topics on the target whose source topic is gone, as far as is known."""
        return len({note.name for note in self.plan.notes if note.source not in self.source})


@dataclass(frozen=True, slots=True)
class _Sight:
    source: TopicListing
    target: TopicListing
    deletes: DeletePlan

    def is_same(self, other: "_Sight") -> bool:
        """Equal listings and plans are the same objects."""
        return self.source is other.source and self.target is other.target and self.deletes is other.deletes


class TopicSync:
    """Plans and applies topics and their partitions."""

    def __init__(
        self,
        settings: MirrorSourceSettings,
        admins: FlowAdmins,
        log: FlowLog,
        deletes: TopicDeleteSync | None = None,
        begun: Callable[[Collection[str]], Collection[str]] | None = None,
    ) -> None:
        """Make a sync; without `deletes`, `sync.topic.deletes` has no effect. `begun` is for `Selection`."""
        self._settings = settings
        self._admins = admins
        self._log = log
        self._deletes = deletes if settings.topic_deletes is not TopicDeletes.NO else None
        self._selection = Selection(settings, begun)
        self._creations = TopicCreations(admins.writes.create_topics, admins.checks.create_topics)
        self._planned: tuple[_Sight, Topics] | None = None
        self._applied: TopicPlan | None = None
        self._retry_at = _NEVER
        self._made: dict[str, int] = {}
        self._made_until = 0.0
        self._awaiting_since: float | None = None
        self._without = LogOnce(log)
        self._held = LogOnce(log)
        self._own_copies = LogOnce(log)
        self._notes = LogOnce(log, logging.INFO, _LINES_MAX, "similar problems of %d more topics")
        self.is_without_configs = False
        """Whether a topic of the last plan was created without configs that the target refuses."""
        self.troubles: Sequence[Trouble] = ()
        """The selected topics, or partitions of them, that have no place on the target by the last plan."""

    def plan(self) -> Topics:
        """Read only; the same object as before while there is nothing new. Raises KafkaError."""
        source, target = self._admins.source.listing(), self._admins.target.listing()
        deletes = _NO_DELETES if self._deletes is None else self._deletes.plan(source, target)
        sight = _Sight(source, target, deletes)
        if self._planned is not None and time.monotonic() < self._retry_at:
            seen, topics = self._planned
            if seen.is_same(sight):
                return topics
        topics = self._plan(sight)
        self._planned = sight, topics
        return topics

    def apply(self, plan: TopicPlan) -> Mapping[str, int]:
        """Apply it once: the partitions of topics that changed. `troubles` has what could not be done.

        Raises KafkaError.
        """
        if plan is self._applied:
            return {}
        created, without = self._creations.create([new.creation for new in plan.creates])
        grown = self._admins.writes.grow_topics({topic.name: topic.partitions for topic in plan.grows})
        if self._deletes is not None:
            self._deletes.apply()
        results = {**created, **grown}
        changes: list[NewTopic | GrowTopic] = [*plan.creates, *plan.grows]
        made = {change.name: change.partitions for change in changes if is_done(results[change.name])}
        self._tell_made("created", {topic: count for topic, count in made.items() if topic in created})
        self._tell_made("grew", {topic: count for topic, count in made.items() if topic in grown})
        self._held.log(() if plan.held is None else (f"no topic is deleted on the target: {plan.held}",))
        failed = failed_configs(self._settings.config_filter.failed)
        self.troubles = [*self._not_begun(), *refused(self._settings.flow, plan, results), *failed]
        self.is_without_configs = bool(without)
        self._without.log(text for _, text in created_without(without))
        self._notes.log(sorted(map(str, plan.notes)))
        own = () if self._planned is None else self._planned[1].selected.own_copies
        self._own_copies.log([own_copies_text(own, self._settings.flow.source)] if own else ())
        self._applied = plan
        if made:
            self._made |= made
            self._made_until = time.monotonic() + _SHOWN_AFTER_S
        if self._is_throttled:
            self._retry_at = time.monotonic() + _THROTTLED_RETRY_S
        elif len(made) < len(changes) or (self._planned is not None and self._planned[1].untold):
            self._retry_at = time.monotonic() + _RETRY_S
        else:
            self._retry_at = self._made_until if made else _NEVER
        return made

    @property
    def has_problems(self) -> bool:
        """Whether something of the last plan could not be done."""
        return any(trouble.requires_action for trouble in self.troubles)

    @property
    def _is_throttled(self) -> bool:
        return any(trouble.word is TroubleWord.THROTTLED for trouble in self.troubles)

    def _not_begun(self) -> Iterable[Trouble]:
        if self._planned is None:
            return []
        topics = self._planned[1]
        return [*blocked(topics.selected, topics.source), *untold(topics.untold, topics.source)]

    def awaits_more(self, now: float) -> bool:
        """Tell whether a copy job is to wait for more topics than the target lists.

        A broker lists thousands of new topics gradually, and one copy job is for all of them. A quota may let
        them through one by one, for hours: every `_TOGETHER_S` copying begins with those that are there.
        """
        if not (self._made or self._is_throttled):
            self._awaiting_since = None
        elif self._awaiting_since is None:
            self._awaiting_since = now
        elif now - self._awaiting_since >= _TOGETHER_S:
            self._awaiting_since = None
        return self._awaiting_since is not None

    def close(self) -> None:
        if self._deletes is not None:
            self._deletes.close()

    def _plan(self, sight: _Sight) -> Topics:
        source = {topic: SourceTopic(count) for topic, count in sight.source.counts.items()}
        target = self._with_made(sight.target.counts)
        selected = self._selection.select(source)
        pairs = selected.pairs
        missing = missing_topics(self._settings, source, target, pairs)
        configs, secret = self._admins.source.known_topic_configs(missing)
        source |= {topic: replace(source[topic], configs=configs.get(topic, ())) for topic in missing}
        # Without its configs a topic is not made: they would not be found wanting until much later.
        makeable = [pair for pair in pairs if pair[0] not in secret] if secret else pairs
        plan = plan_topics(self._settings, source, target, makeable)
        plan = self._with_deletes(plan, sight.deletes)
        return Topics(source, sight.target.counts, plan, selected, sight.source, secret)

    def _with_made(self, target: Mapping[str, int]) -> Mapping[str, int]:
        """The target's topics as if it listed all that was made."""
        if time.monotonic() > self._made_until:
            self._made.clear()
        self._made = {topic: count for topic, count in self._made.items() if target.get(topic, 0) < count}
        return {**target, **self._made} if self._made else target

    def _with_deletes(self, plan: TopicPlan, deletes: DeletePlan) -> TopicPlan:
        if self._deletes is None:
            return plan
        return replace(
            plan,
            notes=(*plan.notes, *self._deletes.notes(deletes)),
            deletes=deletes.deletes if self._settings.topic_deletes is TopicDeletes.YES else (),
            held=deletes.held,
        )

    def _tell_made(self, what: str, topics: Mapping[str, int]) -> None:
        """`topics` have the numbers of partitions that they have now."""
        target = self._settings.flow.target
        if len(topics) > _LINES_MAX:
            first, last = min(topics), max(topics)
            self._log.info("%s %d topics on %s, %s to %s", what, len(topics), target, first, last)
            return
        for topic, count in topics.items():
            to = f" to {counted(count, 'partition')}" if what == "grew" else ""
            self._log.info("%s %s on %s%s", what, topic, target, to)


_NO_DELETES: Final = DeletePlan()
