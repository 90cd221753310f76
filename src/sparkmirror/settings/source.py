"""Settings of MirrorSourceConnector, and the rules by which it selects and names topics."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

from sparkmirror.batches.cycles import names_show_origin
from sparkmirror.domain.acls import SyncAcls
from sparkmirror.domain.assignment import PartitionAssignment
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.incidents import DEFAULT_REACTIONS, Reactions
from sparkmirror.domain.option_fields import FromOption
from sparkmirror.domain.preserving import DEFAULT_PRESERVING, Preserving
from sparkmirror.files import NamedFile
from sparkmirror.policies.config_filter import EachConfigAlone
from sparkmirror.policies.filters import TopicFilter
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.policies.replication import ReplicationPolicy, RoutedPolicy
from sparkmirror.transforms.chain import Chain

PRESERVED_TOPICS: Final = "offsets.preserve.topics"


class TopicDeletes(Enum):
    """`sync.topic.deletes`."""

    NO = "false"
    YES = "true"
    DRY_RUN = "dry-run"


@dataclass(frozen=True, slots=True)
class CopySettings:
    """The settings of a MirrorSourceConnector that its copy tasks use."""

    reactions: Reactions = DEFAULT_REACTIONS
    provenance_header: Annotated[bool, FromOption("provenance.header")] = False
    """Whether records get a header with their clusters of origin; only where topics' names don't."""
    decompressed_bytes_max: Annotated[int, FromOption("batch.decompressed.bytes.max")] = (
        DECOMPRESSED_BYTES_MAX
    )
    preserving: Preserving = DEFAULT_PRESERVING
    transforms: Chain | None = None


DEFAULT_COPY_SETTINGS: Final = CopySettings()


@dataclass(frozen=True, slots=True)
class MirrorSourceSettings:
    """A MirrorSourceConnector's settings as values. An interval of None means that the job is disabled."""

    flow: Flow
    policy: ReplicationPolicy
    topic_filter: TopicFilter
    config_filter: EachConfigAlone
    replication_factor: Annotated[int, FromOption("replication.factor")]
    tasks_max: Annotated[int, FromOption("tasks.max")]
    heartbeats_replication: Annotated[bool, FromOption("heartbeats.replication.enabled")]
    refresh_topics_interval_s: float | None
    sync_topic_configs_interval_s: float | None
    sync_topic_acls_interval_s: float | None
    offset_lag_max: Annotated[int, FromOption("offset.lag.max")]
    offset_syncs_topic: str | None
    """The topic of offset syncs; None if they are not emitted (KIP-1031)."""
    offset_syncs_on_source: bool
    offset_syncs_replication_factor: Annotated[int, FromOption("offset-syncs.topic.replication.factor")]
    copying: CopySettings = DEFAULT_COPY_SETTINGS
    partition_assignment: Annotated[PartitionAssignment, FromOption("partition.assignment")] = (
        PartitionAssignment.LOAD
    )
    lag_group_id: Annotated[str, FromOption("lag.group.id")] = ""
    """The group on the source that the positions are committed for; empty for none."""
    rate_limits: RateLimits = NO_LIMITS
    """The limits at the start; `RateLimitUpdates` may replace them while the mirror runs."""
    topic_deletes: Annotated[TopicDeletes, FromOption("sync.topic.deletes")] = TopicDeletes.NO
    topic_deletes_grace_s: Annotated[float, FromOption("sync.topic.deletes.grace.seconds")] = 86400.0
    sync_acls: Annotated[SyncAcls, FromOption("sync.acls")] = SyncAcls.TOPIC
    sync_acls_delete: Annotated[bool, FromOption("sync.acls.delete")] = False
    sync_quotas: Annotated[bool, FromOption("sync.quotas")] = False
    sync_users: NamedFile | None = None
    """The file that holds the passwords of the users to create."""
    sync_accounts_interval_s: float | None = None
    """The interval for quotas and users; None when neither is synced."""
    preserved_topics: tuple[str, ...] | None = None
    """Regexes of the topics whose offsets are preserved; None for no topic."""
    state_topics: frozenset[str] = frozenset()
    """The names of state topics that were configured: Connect's three, of each worker that is known."""

    opposite: "MirrorSourceSettings | None" = None
    """The settings of the opposite flow, if the same file has it."""

    @property
    def preserves_all(self) -> bool:
        """Whether the offsets of every topic are preserved."""
        return self.preserved_topics == (".*",)

    @property
    def names_show_origin(self) -> bool:
        """Whether the opposite flow sees by names what it must not mirror back."""
        return names_show_origin(self.policy, self.flow.source)


def preserves_offsets(settings: MirrorSourceSettings) -> Callable[[str], bool]:
    """Whether the records of a source topic keep their offsets (`offsets.preserve`).

    Records of heartbeats don't: the target may have its own in the same topic.
    """
    patterns = settings.preserved_topics
    if patterns is None:
        return lambda _: False
    selected, policy = compile_list(patterns, PRESERVED_TOPICS), settings.policy
    return lambda topic: selected.fullmatch(topic) and not policy.is_heartbeats_topic(topic)


def stops_behind_others(settings: MirrorSourceSettings) -> Callable[[str], bool]:
    """Whether nothing of a source topic is copied behind what others have written to its copy."""
    if settings.copying.preserving.continues_translated:
        return lambda _: False
    return preserves_offsets(settings)


def transforms_of(settings: MirrorSourceSettings, topic: str) -> Chain | None:
    """The transforms that may change records of a source topic; None if none. Heartbeats stay as they are."""
    chain, policy, source = settings.copying.transforms, settings.policy, settings.flow.source
    if chain is None or policy.is_heartbeats_topic(topic):
        return None
    named = policy.unrouted if isinstance(policy, RoutedPolicy) else policy.format_remote_topic
    return chain.of_topic(named(source, topic))
