"""Alters the configs of the target's topics so that they follow their source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from sparkmirror.domain.errors import UnsupportedVersionError
from sparkmirror.domain.topics import ConfigEntry
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.config_plan import (
    ConfigPlan,
    MirroredConfigs,
    plan_configs,
)
from sparkmirror.setup.config_troubles import not_synced, refused_configs, unknown_configs
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
    """Plans and applies topic configs."""

    def __init__(self, settings: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._settings = settings
        self._admins = admins
        self._log = log
        self._unreadable: list[Trouble] = []
        self.troubles: Sequence[Trouble] = ()
        """The configs that could not follow the source at the last time."""

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
        """Apply it. Raises KafkaError when the request as a whole failed."""
        target = self._settings.flow.target
        found = [*self._unreadable, *unknown_configs(target, plan.unknown)]
        try:
            errors, refused = alter_configs(self._admins.writes.alter_configs, plan.changes)
        except UnsupportedVersionError as error:
            self.troubles = [*found, self._too_old(error)]
            return
        done = plan.changes.keys() - errors.keys() - refused.keys()
        self._log_done([topic for topic in plan.changes if topic in done])
        found += (not_synced(topic, error) for topic, error in errors.items())
        self.troubles = [*found, *refused_configs(target, refused)]

    def _too_old(self, error: UnsupportedVersionError) -> Trouble:
        """The reason begins with Java's words."""
        target = self._settings.flow.target
        reason = f"the target cluster '{target}' is not compatible with IncrementalAlterConfigs API ({error})"
        remedy = f"upgrade {target} to Kafka 2.3 or newer, or set sync.topic.configs.enabled=false"
        cause = Cause(TroubleWord.NOT_SYNCED, Subject.ACTION, reason, remedy)
        return Trouble(cause, "sync topic configs")

    def _described(
        self, pairs: Sequence[tuple[str, str]], names: Sequence[str] = ()
    ) -> Iterator[MirroredConfigs]:
        """Describe configs in portions: thousands of topics have a million configs."""
        for at in range(0, len(pairs), _PORTION):
            some = pairs[at : at + _PORTION]
            topics, remotes = [one for one, _ in some], [one for _, one in some]
            at_source, untold_at_source = self._admins.source.known_topic_configs(topics, names)
            at_target, untold_at_target = self._admins.target.known_topic_configs(remotes, names)
            untold = {**untold_at_target, **untold_at_source}
            self._unreadable += (not_synced(topic, error) for topic, error in untold.items())
            for topic, remote in some:
                if topic in at_source and remote in at_target:
                    yield MirroredConfigs(remote, at_source[topic], at_target[remote])

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
