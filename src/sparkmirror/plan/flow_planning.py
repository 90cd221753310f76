"""Makes a flow's plan: asks both clusters by the syncs that `run` uses, and changes nothing on either."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from sparkmirror.domain.assignment import assign
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnNewerPosition
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.admin.cluster_survey import survey
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.plan.backlog import Backlog, backlog, measured_rate, reports, stopped
from sparkmirror.plan.changed_clusters import changed_clusters, remembered_clusters, was_elsewhere
from sparkmirror.plan.cluster_findings import too_many_replicas
from sparkmirror.plan.flow_asking import survey_flow
from sparkmirror.plan.flow_plan import (
    Change,
    FlowPlan,
    PlannedCopy,
    Rate,
    Skipped,
    account_changes,
    acl_changes,
    config_changes,
    joined,
    own_topic_changes,
    topic_changes,
)
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.plan.group_access import lag_group_findings, missing_group_rights
from sparkmirror.plan.holes import estimated_holes
from sparkmirror.plan.newer_positions import Newer, newer_positions, predecessor
from sparkmirror.plan.plan_findings import UNREADABLE, findings
from sparkmirror.plan.renamed_targets import renamed_targets
from sparkmirror.plan.validation import validated
from sparkmirror.plan.without_position import filled_topics, predecessors
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource, FlowWorker
from sparkmirror.settings.internal_topics import checkpoints_topic, clusters_topic, heartbeats_topic
from sparkmirror.settings.source import MirrorSourceSettings, preserves_offsets
from sparkmirror.settings.topic_selection import Selection, refusal
from sparkmirror.setup.accounts import AccountPlan, AccountSync
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.acl_sync import AclSync
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.config_sync import ConfigSync
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.new_partitions import NewPartitions
from sparkmirror.setup.promoted_topics import PromotedTopics
from sparkmirror.setup.topic_delete_sync import TopicDeleteSync
from sparkmirror.setup.topic_plan import SourceTopic, TopicPlan
from sparkmirror.setup.topic_sync import Topics, TopicSync
from sparkmirror.storage.cluster_ids import ClusterIds
from sparkmirror.storage.opposite_flow import OppositeFlow
from sparkmirror.storage.own_topics import OwnTopic, Unfit, unfit
from sparkmirror.storage.positions import topics_with_positions
from sparkmirror.storage.progress import PartitionProgress

DEFAULT_RATE: Final = Rate(100_000_000, "a guess, what 1 Gbit/s carries")
"""The rate assumed for a mirror that was never behind long enough for a measurement."""

_T = TypeVar("_T")


def plan_flow(settings: ConfiguredFlow, rate: Rate | None = None) -> FlowPlan:
    """Plan a whole flow of an mm2.properties; `rate` is the expected bytes per second. Raises KafkaError."""
    if settings.source is not None:
        return plan_source(settings, settings.source, rate, settings)
    return _plan_heartbeats(settings)


def _own_topics_beside(settings: ConfiguredFlow) -> Sequence[OwnTopic]:
    """Return the internal topics of the connectors beside the source connector."""
    heartbeats = heartbeats_topic(settings.flow, settings.heartbeat)
    own = [] if heartbeats is None else [heartbeats]
    if settings.checkpoint is not None:
        own.append(checkpoints_topic(settings.flow, settings.checkpoint))
    return own


def _plan_heartbeats(settings: ConfiguredFlow) -> FlowPlan:
    """Plan a flow that mirrors nothing."""
    own = _own_topics_beside(settings)
    if own and not settings.is_copied_back:
        own = [*own, clusters_topic(settings)]
    admin, alias = settings.heartbeat.target_admin, settings.flow.target
    with closing(Admin(admin)) as target:
        present = target.partition_counts()
    missing = [topic for topic in own if topic.creation.name not in present]
    wanted = {
        (alias, topic.replicas_setting, topic.creation.replication_factor): [topic.creation.name]
        for topic in missing
    }
    brokers = len(survey(admin, alias, ()).brokers)
    return FlowPlan(
        settings.flow,
        None,
        changes=tuple(own_topic_changes([(topic.cluster, topic.creation) for topic in missing])),
        findings=tuple(too_many_replicas(wanted, {alias: brokers}, [topic.name for topic in own])),
    )


def plan_source(
    on: FlowWorker,
    connector: ConfiguredSource,
    rate: Rate | None = None,
    beside: ConfiguredFlow | None = None,
) -> FlowPlan:
    """Plan a MirrorSourceConnector, and what the connectors `beside` it need.

    Raises KafkaError when a cluster can't be reached; what it refuses is among the findings.
    """
    with closing(FlowAdmins(on.flow, connector)) as admins:
        return _Planning(on, connector, admins).plan(rate, beside)


class _Planning:
    """Plans a flow once."""

    def __init__(self, on: FlowWorker, connector: ConfiguredSource, admins: FlowAdmins) -> None:
        self._on = on
        self._connector = connector
        self._promoted = PromotedTopics(on, connector)
        self._settings: MirrorSourceSettings = replace(connector.settings, topic_filter=self._promoted.filter)
        self._admins = admins
        self._log = flow_log(__name__, on.flow, connector.name)
        self._unreadable: list[Finding] = []
        self._begun = partial(topics_with_positions, *on.positions_of(connector.name))

    def plan(self, rate: Rate | None, beside: ConfiguredFlow | None) -> FlowPlan:
        no_news: Sequence[str] = ()
        self._part("promoted topics", self._promoted.check, no_news)
        topics = self._topics()
        configs, smaller_limits = self._configs()
        acls = self._acls()
        accounts = self._accounts()
        more_own = () if beside is None else _own_topics_beside(beside)
        surveyed = survey_flow(self._on, self._connector, topics, more_own)
        assigned = self._assigned(surveyed)
        newer = self._newer(topics)
        left = self._part("positions", lambda: self._backlog(list(assigned), newer), Backlog())
        none: Sequence[PartitionProgress] = ()
        reported = self._part("progress", lambda: reports(self._on, self._connector), none)
        begun = {partition.topic for partition in left.positions}
        filled = self._filled(surveyed, begun)
        surveyed = replace(
            surveyed,
            configs=configs,
            smaller_limits=smaller_limits,
            acls=acls,
            accounts=accounts,
            begun=begun,
            translated=[at for at, position in left.positions.items() if position.is_translated],
            shifted=[at for at, position in left.positions.items() if position.run and position.run.shift],
            stopped=stopped(reported),
            filled=filled,
            opposite=self._opposite() if filled else OppositeFlow(),
            predecessors=self._predecessors() if filled else (),
            begins=left.begins,
            lost=left.lost,
            holes=self._holes(surveyed, left),
            homeless=left.homeless,
            left_out=left.left_out,
            newer=newer,
            renamed=renamed_targets(left.positions, topics.pairs, self._admins.target.listing()),
            unfit=self._unfit(surveyed),
            refreshes_groups=_refreshes_groups(beside),
        )
        surveyed = self._part("clusters", lambda: self._with_clusters(surveyed), surveyed)
        surveyed = validated(surveyed, self._admins, self._connector, self._part)
        lacking = self._lacking_groups(surveyed, beside)
        return FlowPlan(
            self._on.flow,
            self._connector.name,
            surveyed.target.cluster_id,
            self._changes(surveyed),
            _copies(surveyed, assigned, left),
            self._rate(rate, reported),
            tuple(self._skipped(topics)),
            (*self._unreadable, *findings(surveyed), *lacking),
        )

    def _changes(self, surveyed: FlowSurvey) -> tuple[Change, ...]:
        target = self._on.flow.target
        own = sorted(
            ((each.cluster, each.creation) for each in surveyed.missing), key=lambda each: each[0] != target
        )
        return joined(
            [
                own_topic_changes(own),
                topic_changes(target, surveyed.topics),
                config_changes(target, surveyed.configs),
                acl_changes(target, surveyed.acls),
                account_changes(target, surveyed.accounts),
            ]
        )

    # parts, each of which may fail by itself

    def _part(
        self, name: str, plan: Callable[[], _T], otherwise: _T, severity: Severity = Severity.BLOCKS
    ) -> _T:
        """Read a part of the survey.

        A failure becomes a finding, but an unreachable cluster ends the plan. It warns of what keeps no
        record from being copied.
        """
        try:
            return plan()
        except SparkmirrorError as error:
            if error.retriable:
                raise
            self._unreadable.append(Finding(UNREADABLE, severity, name, str(error)))
            return otherwise

    def _with_clusters(self, surveyed: FlowSurvey) -> FlowSurvey:
        """Compare both clusters with those of the last run."""
        on, connector = self._on, self._connector
        ids = ClusterIds(surveyed.source.cluster_id, surveyed.target.cluster_id)
        before = remembered_clusters(on, connector, ids)
        elsewhere = before is None and was_elsewhere(on, connector, surveyed.target_topics)
        changed = tuple(changed_clusters(on, connector, before, ids))
        return replace(surveyed, changed=changed, was_elsewhere=elsewhere)

    def _topics(self) -> Topics:
        admins = self._admins

        def listed() -> Topics:
            source = {name: SourceTopic(count) for name, count in admins.source.partition_counts().items()}
            selected = Selection(self._settings, self._begun).select(source)
            return Topics(source, admins.target.partition_counts(), TopicPlan(), selected)

        connector = replace(self._connector, settings=self._settings)
        deletes = TopicDeleteSync(self._on, connector, admins, self._log)
        with closing(TopicSync(self._settings, admins, self._log, deletes, self._begun)) as sync:
            found = self._part("topics", sync.plan, None)
        return listed() if found is None else found

    def _configs(self) -> tuple[ConfigPlan, Mapping[str, tuple[int, int]]]:
        sync = ConfigSync(self._settings, self._admins, self._log)
        none: Mapping[str, tuple[int, int]] = {}
        smaller = self._part("configs", sync.smaller_limits, none, Severity.WARNS)
        if self._settings.sync_topic_configs_interval_s is None:
            return ConfigPlan(), smaller
        return self._part("configs", sync.plan, ConfigPlan(), Severity.WARNS), smaller

    def _acls(self) -> AclPlan:
        if self._settings.sync_topic_acls_interval_s is None:
            return AclPlan()
        sync = AclSync(self._settings, self._admins, self._log)
        return self._part("ACLs", sync.plan, AclPlan(), Severity.WARNS)

    def _accounts(self) -> AccountPlan:
        if self._settings.sync_accounts_interval_s is None:
            return AccountPlan()
        sync = AccountSync(self._settings, self._admins, self._log)
        return self._part("accounts", sync.plan, AccountPlan(), Severity.WARNS)

    # data

    def _assigned(self, surveyed: FlowSurvey) -> Mapping[TopicPartition, int]:
        """The task of each partition, as long as no load is measured."""
        partitions = [
            TopicPartition(topic, number)
            for topic, _ in surveyed.mirrored
            for number in range(surveyed.source_topics[topic])
        ]
        shares = assign(partitions, self._settings.tasks_max)
        return {partition: task for task, share in enumerate(shares) for partition in share}

    def _backlog(
        self, partitions: Sequence[TopicPartition], newer: Mapping[TopicPartition, Newer]
    ) -> Backlog:
        known = NewPartitions(self._on, self._connector)
        known.predecessor = predecessor(newer)
        new = known.among(partitions, self._admins.source.listing())
        continues = self._settings.copying.reactions.on_newer_position is OnNewerPosition.CONTINUE
        positions = {at: each.position for at, each in newer.items()} if continues else {}
        return backlog(self._on, self._connector, partitions, new, positions)

    def _newer(self, topics: Topics) -> Mapping[TopicPartition, Newer]:
        listings = self._admins.source.listing(), self._admins.target.listing()
        nothing: Mapping[TopicPartition, Newer] = {}
        return self._part(
            "positions", lambda: newer_positions(self._on, self._connector, topics.pairs, *listings), nothing
        )

    def _filled(self, surveyed: FlowSurvey, begun: Collection[str]) -> Collection[str]:
        """The remote topics that hold records without evidence that this mirror wrote them."""
        not_begun = [pair for pair in surveyed.mirrored if pair[0] not in begun]
        counts = surveyed.source_topics, surveyed.target_topics
        return filled_topics(self._connector, not_begun, *counts)

    def _holes(self, surveyed: FlowSurvey, left: Backlog) -> Mapping[TopicPartition, int]:
        """Estimate the holes of topics whose offsets are preserved.

        A missing right to read them is another finding.
        """
        preserves = preserves_offsets(self._settings)
        wanted = {topic for topic, _ in surveyed.mirrored if preserves(topic)}
        consumer = self._connector.consumer_of(0)

        def estimated() -> Mapping[TopicPartition, int]:
            try:
                return estimated_holes(self._admins.source, consumer, wanted, left)
            except AuthorizationError:
                return {}

        return self._part("offsets without records", estimated, {})

    def _lacking_groups(self, surveyed: FlowSurvey, beside: ConfiguredFlow | None) -> Sequence[Finding]:
        checkpoint = None if beside is None else beside.checkpoint
        nothing: Sequence[Finding] = ()

        def lacking() -> Sequence[Finding]:
            rights = missing_group_rights(surveyed, self._connector, checkpoint)
            return [*rights, *lag_group_findings(surveyed, self._connector)]

        return self._part("groups", lacking, nothing, Severity.WARNS)

    def _unfit(self, surveyed: FlowSurvey) -> Sequence[Unfit]:
        """Look at own topics that exist. A missing right to see them is another finding."""
        source, target = self._on.flow
        there = [topic for topic in surveyed.own if topic not in surveyed.missing]
        nothing: Sequence[Unfit] = ()
        return [
            each
            for cluster, admin in ((source, self._admins.source), (target, self._admins.target))
            for each in self._part(
                "own topics",
                partial(unfit, admin, [topic for topic in there if topic.cluster == cluster]),
                nothing,
            )
        ]

    def _opposite(self) -> OppositeFlow:
        if self._settings.preserved_topics is None:
            return OppositeFlow()
        return OppositeFlow.read(self._on.flow.target, self._connector.consumer_of(0).connection)

    def _predecessors(self) -> Collection[str]:
        return self._part("positions", lambda: predecessors(self._on, self._connector), ())

    def _rate(self, wanted: Rate | None, reported: Sequence[PartitionProgress]) -> Rate:
        measured = measured_rate(reported) if wanted is None else None
        found = (
            DEFAULT_RATE if measured is None else Rate(measured, "what the mirror has reached when behind")
        )
        found = wanted or found
        limit = self._settings.rate_limits.flow
        return found if limit is None or limit >= found.bytes_s else Rate(limit, "max.bytes.per.second")

    def _skipped(self, topics: Topics) -> Iterable[Skipped]:
        for topic in sorted(topics.source):
            refused = refusal(self._settings, topic)
            if refused is not None:
                yield Skipped(topic, refused.rule, refused.why)


def _refreshes_groups(beside: ConfiguredFlow | None) -> bool:
    checkpoint = None if beside is None else beside.checkpoint
    return checkpoint is None or checkpoint.settings.refresh_groups_interval_s is not None


def _copies(
    surveyed: FlowSurvey, assigned: Mapping[TopicPartition, int], left: Backlog
) -> tuple[PlannedCopy, ...]:
    remote = dict(surveyed.mirrored)
    return tuple(
        PlannedCopy(
            partition,
            remote[partition.topic],
            task,
            left.begins.get(partition),
            left.ends.get(partition),
            left.sizes.get(partition),
        )
        for partition, task in sorted(assigned.items())
    )


_ASKED_MAX: Final = 500
"""Topics about which a mirror that begins asks for its rights: who lacks them lacks most of them."""


def obstacles(on: FlowWorker, connector: ConfiguredSource, topics: Topics) -> Sequence[Finding]:
    """Find what blocks a flow that starts, by a request to each broker. Raises KafkaError."""
    surveyed = survey_flow(on, connector, topics, asked_max=_ASKED_MAX)
    return [finding for finding in findings(surveyed) if finding.severity is Severity.BLOCKS]
