"""Makes the configs of the target's topics follow their source."""

from collections.abc import Iterator, Sequence
from typing import Final

from sparkmirror.connectors.config_plan import ConfigPlan, MirroredConfigs, plan_configs
from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.connectors.topic_plan import replicated_topics
from sparkmirror.runtime.flow_admins import FlowAdmins
from sparkmirror.runtime.flow_log import FlowLog

_PORTION: Final = 500
"""Topics described at a time on either side."""


class ConfigSync:
    """One owner."""

    def __init__(self, told: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._told = told
        self._admins = admins
        self._log = log

    def run(self) -> None:
        """Raises KafkaError."""
        self.apply(self.plan())

    def plan(self) -> ConfigPlan:
        """Reads only. Raises KafkaError."""
        source, target = self._admins.source.partition_counts(), self._admins.target.partition_counts()
        pairs = replicated_topics(self._told, source, target)
        return plan_configs(self._told.config_filter, self._described(pairs))

    def _described(self, pairs: Sequence[tuple[str, str]]) -> Iterator[MirroredConfigs]:
        """A portion after the other: thousands of topics have a million configs."""
        for at in range(0, len(pairs), _PORTION):
            some = pairs[at : at + _PORTION]
            at_source = self._admins.source.topic_configs([topic for topic, _ in some])
            at_target = self._admins.target.topic_configs([remote for _, remote in some])
            for topic, remote in some:
                if topic in at_source and remote in at_target:
                    yield MirroredConfigs(remote, at_source[topic], at_target[remote])

    def apply(self, plan: ConfigPlan) -> None:
        """Raises KafkaError when the request as a whole failed."""
        for topic, error in self._admins.writes.alter_configs(plan.changes).items():
            if error is None:
                self._log.info("configs of %s follow the source again", topic)
            else:
                self._log.warning("%s", error)
