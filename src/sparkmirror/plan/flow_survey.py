"""Holds what is known of a flow before it is judged: both clusters' state, and the plans from it. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.incidents import ChangedCluster
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.admin.cluster_survey import ClusterSurvey
from sparkmirror.kafka.transactions.fencing import FENCING_IDS
from sparkmirror.plan.newer_positions import Newer
from sparkmirror.plan.renamed_targets import RenamedTarget
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import Blocked
from sparkmirror.setup.accounts import AccountPlan
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.refused_configs import RefusedConfigs
from sparkmirror.setup.topic_plan import TopicPlan
from sparkmirror.storage.opposite_flow import OppositeFlow
from sparkmirror.storage.own_topics import OwnTopic, Unfit


class Refusal(NamedTuple):
    """A broker's answer to something that it was asked to check, and not to do."""

    cluster: Alias
    need: Need
    name: str
    error: KafkaError


@dataclass(frozen=True, slots=True)
class FlowSurvey:
    """`source_topics` and `target_topics` are all that are there, with their partitions.

    `mirrored` are those to mirror, each with its name on the target; `begun` are those of them of which a
    position is stored, `filled` the target's that hold records. `named` are asked for by their whole name.
    """

    settings: MirrorSourceSettings
    source: ClusterSurvey
    target: ClusterSurvey
    source_topics: Mapping[str, int] = field(default_factory=dict)
    target_topics: Mapping[str, int] = field(default_factory=dict)
    mirrored: Sequence[tuple[str, str]] = ()
    blocked: Mapping[str, Blocked] = field(default_factory=dict)
    """The topics that are selected and can't be mirrored."""
    named: Collection[str] = ()
    idle_patterns: Sequence[str] = ()
    """Patterns of `topics` that no topic matches."""
    topics: TopicPlan = field(default_factory=TopicPlan)
    untold: Mapping[str, KafkaError] = field(default_factory=dict)
    """Topics that the target lacks and whose configs can't be read."""
    configs: ConfigPlan = field(default_factory=ConfigPlan)
    smaller_limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The largest batch of source and target, for topics whose target takes less and that no sync alters."""
    acls: AclPlan = field(default_factory=AclPlan)
    accounts: AccountPlan = field(default_factory=AccountPlan)
    own: Sequence[OwnTopic] = ()
    changed: Sequence[ChangedCluster] = ()
    was_elsewhere: bool = False
    """Whether the target, which is the source now, was another cluster before."""
    begun: Collection[str] = ()
    translated: Collection[TopicPartition] = ()
    """Partitions whose offsets could no longer be preserved: they are copied with other offsets."""
    shifted: Collection[TopicPartition] = ()
    """Partitions that are copied with other offsets, as their positions show."""
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Partitions that require action, as their tasks reported last, with the reason."""
    opposite: OppositeFlow = field(default_factory=OppositeFlow)
    """The reports of the opposite flow, which copies from the target to the source."""
    predecessors: Collection[str] = ()
    """Other connectors that have positions of this source."""
    filled: Collection[str] = ()
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first upstream offset to copy."""
    lost: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Records that are gone from the source and were not copied."""
    holes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """An estimate of the offsets left to copy that have no record, where offsets are preserved."""
    homeless: Collection[TopicPartition] = ()
    """Partitions without a position, where `auto.offset.reset` is none."""
    left_out: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Records that `auto.offset.reset=latest` leaves out."""
    newer: Mapping[TopicPartition, Newer] = field(default_factory=dict)
    """Partitions that another connector has copied further since."""
    renamed: Mapping[str, RenamedTarget] = field(default_factory=dict)
    """Source topics that were mirrored to topics of other names."""
    refreshes_groups: bool = True
    """Whether groups that come later are followed, too."""
    refusals: Sequence[Refusal] = ()
    created_without: RefusedConfigs = field(default_factory=dict)
    """The configs without which topics can be created."""
    unaltered: RefusedConfigs = field(default_factory=dict)
    """The configs that the target refuses to alter."""
    unfit: Sequence[Unfit] = ()
    """Own topics that exist and are not as they must be."""
    id_prefix: str = FENCING_IDS
    """The prefix of the transactional ids that the flow uses on the target."""
    is_idempotent: bool = True
    """Whether batches on the target have producer ids."""

    def side(self, cluster: Alias) -> ClusterSurvey:
        return self.source if cluster == self.source.alias else self.target

    @property
    def missing(self) -> Sequence[OwnTopic]:
        """Return the mirror's own topics that must be created."""
        return [topic for topic in self.own if topic.creation.name not in self._topics(topic.cluster)]

    def _topics(self, cluster: Alias) -> Mapping[str, int]:
        return self.source_topics if cluster == self.source.alias else self.target_topics
