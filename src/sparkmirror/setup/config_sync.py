"""Alters the configs of the target's topics so that they follow their source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from sparkmirror.domain.errors import UnsupportedVersionError
from sparkmirror.domain.topics import ConfigEntry
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.config_plan import (
    ConfigPlan,
    MirroredConfigs,
    plan_configs,
    topics_by_unknown,
)
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.refused_configs import alter_configs
from sparkmirror.setup.topic_plan import replicated_topics

_PORTION: Final = 500
"""Topics described at a time on either side."""
_LINES_MAX: Final = 20
"""The most topics that are logged in lines of their own."""
_NAMED_MAX: Final = 3
_BATCH_MAX: Final = "max.message.bytes"


class ConfigSync:
    """One owner."""

    def __init__(self, settings: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._settings = settings
        self._admins = admins
        self._log = log
        self._problems = LogOnce(log, lines_max=_LINES_MAX, overflow="similar problems of %d more topics")
        self._unreadable: list[str] = []
        self.incompatible: str | None = None
        """Why no config can follow, in Java's words, where the brokers are too old. Safe in any thread."""

    def run(self) -> None:
        """Raises KafkaError."""
        self.apply(self.plan())

    def plan(self) -> ConfigPlan:
        """Reads only. Raises KafkaError."""
        source, target = self._admins.source.partition_counts(), self._admins.target.partition_counts()
        pairs = replicated_topics(self._settings, source, target)
        self._unreadable.clear()
        return plan_configs(self._settings.config_filter, self._described(pairs))

    def smaller_limits(self) -> Mapping[str, tuple[int, int]]:
        """Return the largest batch of source and target for topics whose target takes less.

        There are none where a sync sets it. Raises KafkaError.
        """
        settings = self._settings
        is_set = settings.config_filter.should_replicate_config_property(_BATCH_MAX)
        if settings.sync_topic_configs_interval_s is not None and is_set:
            return {}
        source, target = self._admins.source.partition_counts(), self._admins.target.partition_counts()
        pairs = replicated_topics(settings, source, target)
        found = {
            one.topic: (_batch_max(one.source), _batch_max(one.target))
            for one in self._described(pairs, [_BATCH_MAX])
        }
        return {topic: sizes for topic, sizes in found.items() if sizes[0] > sizes[1]}

    def apply(self, plan: ConfigPlan) -> None:
        """Apply it; each problem is logged once. Raises KafkaError when the request as a whole failed."""
        problems = [*self._unreadable, *self._unknown(plan)]
        try:
            errors, refused = alter_configs(self._admins.writes.alter_configs, plan.changes)
        except UnsupportedVersionError as error:
            problems.append(self._too_old(plan, error))
        else:
            self.incompatible = None
            done = plan.changes.keys() - errors.keys() - refused.keys()
            self._log_done([topic for topic in plan.changes if topic in done])
            problems += map(str, errors.values())
            problems += (
                f"{name}: {error}" for configs in refused.values() for name, error in configs.items()
            )
        self._problems.log(sorted(problems))

    def _too_old(self, plan: ConfigPlan, error: UnsupportedVersionError) -> str:
        target = self._settings.flow.target
        self.incompatible = (
            f"the target cluster '{target}' is not compatible with IncrementalAlterConfigs API"
        )
        return (
            f"{self.incompatible} ({error}), so configs of {_named(sorted(plan.changes))} don't follow the "
            f"source: upgrade {target} to Kafka 2.3 or newer, or set sync.topic.configs.enabled=false"
        )

    def _described(
        self, pairs: Sequence[tuple[str, str]], names: Sequence[str] = ()
    ) -> Iterator[MirroredConfigs]:
        """Describe configs in portions: thousands of topics have a million configs."""
        for at in range(0, len(pairs), _PORTION):
            some = pairs[at : at + _PORTION]
            topics, remotes = [one for one, _ in some], [one for _, one in some]
            at_source, untold_at_source = self._admins.source.known_topic_configs(topics, names)
            at_target, untold_at_target = self._admins.target.known_topic_configs(remotes, names)
            self._unreadable += map(str, (*untold_at_source.values(), *untold_at_target.values()))
            for topic, remote in some:
                if topic in at_source and remote in at_target:
                    yield MirroredConfigs(remote, at_source[topic], at_target[remote])

    def _unknown(self, plan: ConfigPlan) -> Iterator[str]:
        target = self._settings.flow.target
        for name, topics in topics_by_unknown(plan).items():
            yield f"{target} does not know the config {name}, so {_named(topics)} can't follow in it"

    def _log_done(self, topics: Sequence[str]) -> None:
        if len(topics) > _LINES_MAX:
            self._log.info("configs of %d topics, %s, follow the source again", len(topics), _named(topics))
            return
        for topic in topics:
            self._log.info("configs of %s follow the source again", topic)


def _batch_max(configs: Iterable[ConfigEntry]) -> int:
    return next((int(entry.value) for entry in configs if entry.name == _BATCH_MAX and entry.value), 0)


def _named(topics: Sequence[str]) -> str:
    """A few of them, and how many more."""
    shown = ", ".join(topics[:_NAMED_MAX])
    more = len(topics) - _NAMED_MAX
    return f"{shown} and {more:,} more" if more > 0 else shown
