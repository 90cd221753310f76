"""Settings of a source connector, for tests that need any."""

from typing import Final

from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.policies.config_filter import DefaultConfigPropertyFilter, EachConfigAlone
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import DefaultReplicationPolicy
from sparkmirror.settings.source import MirrorSourceSettings

SETTINGS: Final = MirrorSourceSettings(
    flow=Flow(Alias("source"), Alias("target")),
    policy=DefaultReplicationPolicy(),
    topic_filter=DefaultTopicFilter(),
    config_filter=EachConfigAlone(DefaultConfigPropertyFilter()),
    replication_factor=2,
    tasks_max=1,
    heartbeats_replication=True,
    refresh_topics_interval_s=600,
    sync_topic_configs_interval_s=600,
    sync_topic_acls_interval_s=600,
    offset_lag_max=100,
    offset_syncs_topic="mm2-offset-syncs.target.internal",
    offset_syncs_on_source=True,
    offset_syncs_replication_factor=3,
)
"""MM2's defaults for the flow source->target."""
