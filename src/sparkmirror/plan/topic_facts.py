"""Collects the facts about one topic of the source from both clusters and the flow's own topics."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Subject, Trouble, TroubleWord
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.plan.access_findings import OLD_BROKER
from sparkmirror.plan.backlog import stored_positions
from sparkmirror.plan.flow_asking import survey_flow
from sparkmirror.plan.plan_findings import findings
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource
from sparkmirror.settings.topic_selection import BlockKind, Selected, Selection, remote_topic, verdicts
from sparkmirror.setup.acl_sync import AclSync
from sparkmirror.setup.config_plan import config_differences
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_explanation import ConfigDifference, MirroredPartition, TopicFacts
from sparkmirror.setup.topic_plan import SourceTopic, plan_topics
from sparkmirror.setup.topic_sync import Topics
from sparkmirror.storage.positions import Position, topics_with_positions
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.progress_reader import ProgressReader


def topic_facts(settings: ConfiguredFlow, connector: ConfiguredSource, topic: str) -> TopicFacts:
    """Raises KafkaError when a cluster does not respond; what it refuses is among the facts."""
    with closing(FlowAdmins(settings.flow, connector)) as admins:
        return _Asking(settings, connector, admins).of(topic)


class _Asking:
    """A flow, and a connection to each of its clusters."""

    def __init__(self, flow: ConfiguredFlow, connector: ConfiguredSource, admins: FlowAdmins) -> None:
        self._flow = flow
        self._connector = connector
        self._settings = connector.settings
        self._admins = admins
        self._notes: list[str] = []
        self._begun = partial(topics_with_positions, *flow.positions_of(connector.name))

    def of(self, topic: str) -> TopicFacts:
        source, target = self._admins.source.partition_counts(), self._admins.target.partition_counts()
        selected = Selection(self._settings, self._begun).select([*source, topic])
        blocked = selected.blocked.get(topic)
        remote = "" if blocked and blocked.kind is BlockKind.PLUGIN else remote_topic(self._settings, topic)
        here, there = source.get(topic), target.get(remote)
        facts = TopicFacts(
            self._settings.flow,
            topic,
            remote,
            verdicts(self._settings, topic),
            here,
            there,
            hints=self._hints(topic, source),
            refreshes=self._settings.refresh_topics_interval_s is not None,
        )
        if here is None or not all(verdict.passes for verdict in facts.verdicts):
            return facts
        if blocked is not None:
            return replace(facts, obstacles=[str(blocked)])
        found = self._findings(topic, source, target)
        blocking = [finding for finding in found if finding.severity is Severity.BLOCKS]
        others = [finding for finding in found if finding.severity is Severity.WARNS]
        reports, troubles, is_stopped = self._said(source)
        about = ((Subject.TOPIC, topic), (Subject.CONFIG, remote))
        differs = {it.what: it.reason for it in troubles if it.word is TroubleWord.DIFFERS}
        return replace(
            facts,
            troubles=[it for it in troubles if (it.cause.subject, it.what) in about],
            partitions=self._partitions(topic, remote, (here, there or 0), reports),
            configs=self._configs(topic, remote, differs) if there is not None else (),
            acls=self._acls(remote),
            obstacles=list(map(_line, blocking)),
            notes=[*map(_line, others), *self._notes],
            waits_for_start=is_stopped,
        )

    def _hints(self, topic: str, source: Collection[str]) -> Sequence[str]:
        """Note the source topic for a name of the target, or one of a similar name."""
        if topic in source:
            return []
        upstream = self._settings.policy.upstream_topic(topic)
        if upstream is not None and upstream in source:
            target = self._settings.flow.target
            return [f"{topic} is what {upstream} is called on {target}: ask for {upstream}"]
        return [f"did you mean {near}?" for near in get_close_matches(topic, source, n=1)]

    def _findings(
        self, topic: str, source: Mapping[str, int], target: Mapping[str, int]
    ) -> Sequence[Finding]:
        """Return findings of a plan for this topic only; findings of other topics are dropped."""
        only = {topic: SourceTopic(source[topic])}
        remote = remote_topic(self._settings, topic)
        pairs = [(topic, remote)]
        topics = Topics(only, target, plan_topics(self._settings, only, target, pairs), Selected(pairs))
        surveyed = replace(survey_flow(self._flow, self._connector, topics), own=(), named=())
        mine = {topic, remote, *(setting for setting in ("replication.factor",) if remote not in target)}
        return [
            finding for finding in findings(surveyed) if finding.subject in mine or finding.kind == OLD_BROKER
        ]

    def _partitions(
        self,
        topic: str,
        remote: str,
        counts: tuple[int, int],
        reports: Mapping[TopicPartition, PartitionProgress],
    ) -> Sequence[MirroredPartition]:
        here, there = counts
        partitions = [TopicPartition(topic, number) for number in range(here)]
        counterparts = {each: TopicPartition(remote, each.partition) for each in partitions}
        consumer = self._connector.consumer_of(0)
        starts, ends = (list_offsets(consumer, partitions, which) for which in (EARLIEST, LATEST))
        there_ends = list_offsets(
            ConsumerSettings(self._connector.target_admin), list(counterparts.values())[:there], LATEST
        )
        positions = self._positions(partitions)
        return [
            _with_report(
                MirroredPartition(
                    partition,
                    copy,
                    _offset(starts.get(partition)),
                    _offset(ends.get(partition)),
                    positions[partition].offset + 1 if partition in positions else None,
                    _offset(there_ends.get(copy)),
                ),
                reports.get(partition),
            )
            for partition, copy in counterparts.items()
        ]

    def _positions(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Position]:
        try:
            return stored_positions(self._flow, self._connector, partitions)
        except KafkaError as error:
            self._notes.append(f"positions can't be read: {error}")
            return {}

    def _said(
        self, topics: Collection[str]
    ) -> tuple[Mapping[TopicPartition, PartitionProgress], Sequence[Trouble], bool]:
        """The mirror's last reports, what it can't do, and whether it was stopped, or has never run."""
        topic = StateTopic.PROGRESS.of(self._flow.flow.source)
        with closing(ProgressReader(self._flow.worker_client, topic, may_be_missing=True)) as reader:
            try:
                reader.catch_up()
            except KafkaError as error:
                if error.code == UNKNOWN_TOPIC_OR_PARTITION:  # it has never run, or Java's mirror does
                    return {}, (), not self._begun(topics)
                self._notes.append(f"the mirror's progress topic can't be read: {error}")
                return {}, (), False
            name = self._connector.name
            job = reader.job_epochs.get(name)
            is_stopped = job is not None and job.stopped
            reports = {
                # A mirror that was stopped has stored its last positions, and another may run since then.
                source: replace(report, position=None) if is_stopped else report
                for (of, source), report in reader.poll().items()
                if of == name
            }
            return reports, reader.troubles_of(name), is_stopped

    def _configs(self, topic: str, remote: str, refused: Mapping[str, str]) -> Sequence[ConfigDifference]:
        try:
            here = self._admins.source.topic_configs([topic]).get(topic, ())
            there = self._admins.target.topic_configs([remote]).get(remote, ())
        except KafkaError as error:
            self._notes.append(f"configs can't be read: {error}")
            return []
        is_synced = self._settings.sync_topic_configs_interval_s is not None
        if not is_synced:
            self._notes.append("sync.topic.configs.enabled is false: configs are set once, at creation")
        kept = self._settings.config_filter
        return list(config_differences(kept, here, there, is_synced=is_synced, refused=refused))

    def _acls(self, remote: str) -> Sequence[str]:
        if self._settings.sync_topic_acls_interval_s is None:
            self._notes.append("sync.topic.acls.enabled is false: ACLs are left alone")
            return []
        log = flow_log(__name__, self._settings.flow, self._connector.name)
        try:
            plan = AclSync(self._settings, self._admins, log).plan()
        except KafkaError as error:
            self._notes.append(f"ACLs can't be read: {error}")
            return []
        return [str(binding) for binding in plan.creates if binding.resource_name == remote]


def _with_report(facts: MirroredPartition, report: PartitionProgress | None) -> MirroredPartition:
    if report is None:
        return facts
    is_failing = report.state in (PartitionState.RETRYING, PartitionState.FAILED)
    known = [facts.mirrored_to, None if report.position is None else report.position + 1]
    return replace(
        facts,
        mirrored_to=max((it for it in known if it is not None), default=None),
        state=report.state.value,
        error=report.error if is_failing else None,
        notice=report.notice,
        incidents=report.incidents,
    )


def _line(finding: Finding) -> str:
    return f"{finding.text}: {finding.remedy}" if finding.remedy else finding.text


def _offset(found: int | SparkmirrorError | None) -> int | None:
    return found if isinstance(found, int) else None
