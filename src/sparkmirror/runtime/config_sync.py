"""Makes the configs of the target's topics follow their source."""

from sparkmirror.connectors.config_plan import ConfigPlan, MirroredConfigs, plan_configs
from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.connectors.topic_plan import replicated_topics
from sparkmirror.runtime.flow_admins import FlowAdmins
from sparkmirror.runtime.flow_log import FlowLog


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
        pairs = replicated_topics(
            self._told, self._admins.source.partition_counts(), self._admins.target.partition_counts()
        )
        at_source = self._admins.source.topic_configs([topic for topic, _ in pairs])
        at_target = self._admins.target.topic_configs([remote for _, remote in pairs])
        mirrored = [
            MirroredConfigs(remote, tuple(at_source.get(topic, ())), tuple(at_target.get(remote, ())))
            for topic, remote in pairs
        ]
        return plan_configs(self._told.config_filter, mirrored)

    def apply(self, plan: ConfigPlan) -> None:
        """Raises KafkaError when the request as a whole failed."""
        for topic, error in self._admins.writes.alter_configs(plan.changes).items():
            if error is None:
                self._log.info("configs of %s follow the source again", topic)
            else:
                self._log.warning("%s", error)
