"""Makes the target's topics those that the source's call for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.connectors.topic_plan import (
    GrowTopic,
    NewTopic,
    SourceTopic,
    TopicPlan,
    missing_topics,
    plan_topics,
)
from sparkmirror.domain.admin_writes import TopicCreation
from sparkmirror.runtime.flow_admins import FlowAdmins
from sparkmirror.runtime.flow_log import FlowLog


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of both sides as they were seen, and what the target's lack."""

    source: Mapping[str, SourceTopic]
    target: Mapping[str, int]
    plan: TopicPlan


class TopicSync:
    """One owner."""

    def __init__(self, told: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._told = told
        self._admins = admins
        self._log = log
        self._reported: set[str] = set()

    def plan(self) -> Topics:
        """Reads only. Raises KafkaError."""
        source = {
            topic: SourceTopic(count) for topic, count in self._admins.source.partition_counts().items()
        }
        target = self._admins.target.partition_counts()
        missing = missing_topics(self._told, source, target)
        configs = self._admins.source.topic_configs(missing)
        described = {
            topic: replace(source[topic], configs=tuple(configs.get(topic, ()))) for topic in missing
        }
        source |= described
        return Topics(source, target, plan_topics(self._told, source, target))

    def apply(self, plan: TopicPlan) -> Mapping[str, int]:
        """Create and grow topics: the partitions of those that changed. What can't be done is said once."""
        creations = [
            TopicCreation(new.name, new.partitions, new.replication_factor, dict(new.configs))
            for new in plan.creates
        ]
        created = self._admins.writes.create_topics(creations)
        grown = self._admins.writes.grow_topics({topic.name: topic.partitions for topic in plan.grows})
        results = {**created, **grown}
        changes: list[NewTopic | GrowTopic] = [*plan.creates, *plan.grows]
        made = {change.name: change.partitions for change in changes if results[change.name] is None}
        for topic in made:
            self._log.info("%s %s", "created" if topic in created else "grew", topic)
        failures = [str(error) for error in results.values() if error is not None]
        self._report([*plan.warnings, *failures])
        return made

    @property
    def has_problems(self) -> bool:
        """Whether something of the last plan could not be done."""
        return bool(self._reported)

    def _report(self, problems: Iterable[str]) -> None:
        current = set(problems)
        for problem in sorted(current - self._reported):
            self._log.warning("%s", problem)
        self._reported = current
