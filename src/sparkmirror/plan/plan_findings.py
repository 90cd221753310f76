"""Finds what blocks a plan, from a `FlowSurvey`. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.quantities import counted, some_of
from sparkmirror.groups.group_explanation import LATER_GROUPS
from sparkmirror.kafka.wire.error_codes import (
    INVALID_REPLICATION_FACTOR,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from sparkmirror.plan.access_findings import at_least_once, missing_right, missing_rights, old_brokers
from sparkmirror.plan.cluster_findings import TOO_MANY_REPLICAS, missing_brokers, one_cluster, other_clusters
from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.plan.newer_positions import newer_texts
from sparkmirror.plan.preserved_findings import preserved_topics
from sparkmirror.plan.renamed_targets import renamed_text
from sparkmirror.policies.replication import RoutedPolicy
from sparkmirror.settings.rings import shared_topic, shared_topics
from sparkmirror.settings.source import stops_behind_others, transforms_of
from sparkmirror.settings.topic_selection import BlockKind, by_cause
from sparkmirror.setup.config_troubles import (
    failed_configs,
    refused_configs,
    remedy_of_refused,
    unknown_configs,
)
from sparkmirror.setup.refused_configs import created_without
from sparkmirror.setup.topic_explanation import LATER_TOPICS
from sparkmirror.setup.topic_plan import throttled_creation

BAD_NAME: Final = BlockKind.NAME.value
COLLIDING: Final = "colliding names"
SHARED: Final = "shared topic"
UNFIT: Final = "unfit topic"
STRANGER: Final = "topic of others"
REFUSED: Final = "refused"
THROTTLED: Final = "throttled"
UNREADABLE: Final = "unreadable"
UNKNOWN_CONFIG: Final = "unknown config"
REFUSED_CONFIG: Final = "refused config"
SMALLER_LIMIT: Final = "smaller limit"
MISSING_TOPIC: Final = "missing topic"
LOST_RECORDS: Final = "lost records"
RENAMED: Final = "another name"
NEWER_POSITION: Final = "newer position"
LEFT_OUT: Final = "left out"
NO_POSITION: Final = "no position"
TOPIC: Final = "topic"
ACCOUNTS: Final = "accounts"
NO_DELETES: Final = "no deletes"
ACLS: Final = "ACLs"
NEVER_AGAIN: Final = "never again"
TRANSFORMS: Final = "transforms"


_INVALID_TOPIC: Final = 17
_EXPLAINED_BY: Final[Mapping[int, str]] = {
    INVALID_REPLICATION_FACTOR: TOO_MANY_REPLICAS,
    _INVALID_TOPIC: BAD_NAME,
}
"""Refusals for which a finding of our own is more precise."""


def findings(survey: FlowSurvey) -> tuple[Finding, ...]:
    """Return the findings of one flow by itself, those that block first."""
    found = [finding for judge in _JUDGES for finding in judge(survey)]
    found += _refused(survey, {finding.kind for finding in found})
    found += _warnings(survey, {finding.text for finding in found})
    order = list(Severity)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def joined(plans: Sequence[FlowPlan]) -> Sequence[FlowPlan]:
    """Add the findings between the flows of a file. A topic that another of them fills is no stranger's."""
    return [
        replace(
            plan,
            findings=(
                *between,
                *(
                    found
                    for found in plan.findings
                    if found.kind != STRANGER or found.subject not in {each.subject for each in between}
                ),
            ),
        )
        for plan, between in zip(plans, findings_between(plans), strict=True)
    ]


def findings_between(plans: Sequence[FlowPlan]) -> Sequence[tuple[Finding, ...]]:
    """Return, for each flow of a file, the findings between flows: topics that several of them write.

    Two aliases may mean the same cluster, so targets are identified by Kafka's id.
    """
    pairs = [sorted({(copy.source.topic, copy.target_topic) for copy in plan.copies}) for plan in plans]
    targets = [plan.target_id or plan.flow.target for plan in plans]
    shared = {
        target: shared_topics(
            (plan.flow.source, of)
            for plan, of, its in zip(plans, pairs, targets, strict=True)
            if its == target
        )
        for target in set(targets)
    }
    return [
        tuple(
            Finding(SHARED, Severity.WARNS, remote, *shared_topic(shared[target][remote]))
            for _, remote in of
            if remote in shared[target]
        )
        for of, target in zip(pairs, targets, strict=True)
    ]


def _blocked(survey: FlowSurvey) -> Iterator[Finding]:
    for blocked, topics in by_cause(survey.blocked).items():
        named = some_of(topics)
        text = f"can't be mirrored: {blocked.why}"
        yield Finding(blocked.kind.value, Severity.BLOCKS, named, text, blocked.remedy)


def _colliding(survey: FlowSurvey) -> Iterator[Finding]:
    """Brokers refuse names that differ by `.` and `_` only, because their metrics would merge."""
    present: dict[str, str] = {_metric_name(topic): topic for topic in survey.target_topics}
    new = [own.creation.name for own in survey.missing if own.cluster == survey.target.alias]
    new += [creation.name for creation in survey.topics.creates]
    for name in new:
        other = present.setdefault(_metric_name(name), name)
        if other != name:
            yield Finding(
                COLLIDING,
                Severity.BLOCKS,
                name,
                f"on {survey.target.alias} it differs from {other} by '.' and '_' only, which brokers refuse",
                "rename or exclude one of them, or choose another replication.policy.separator",
            )


def _metric_name(topic: str) -> str:
    return topic.replace(".", "_")


def _unfit(survey: FlowSurvey) -> Iterator[Finding]:
    for topic, why, remedy, can_be_written in survey.unfit:
        blocks = topic.is_needed and not can_be_written
        yield Finding(UNFIT, Severity.BLOCKS if blocks else Severity.WARNS, topic.name, why, remedy)


def _strangers(survey: FlowSurvey) -> Iterator[Finding]:
    begun, stops = survey.begun, stops_behind_others(survey.settings)
    filled = [
        (topic, remote)
        for topic, remote in survey.mirrored
        if remote in survey.filled and topic not in begun and not stops(topic)
    ]
    return strangers(filled, survey.target.alias, survey.predecessors)


def strangers(
    filled: Iterable[tuple[str, str]], target: Alias, predecessors: Collection[str] = ()
) -> Iterator[Finding]:
    """Topics with records that came by another way than this mirror, each with its name on the target.

    `predecessors` are other connectors that have positions of this source.
    """
    remedy = "hand over the positions of the mirror that made it, or exclude the topic"
    if predecessors:
        names = " or ".join(sorted(predecessors))
        remedy = f"to continue where the connector {names} has stopped, set name to that; else {remedy}"
    for _, remote in filled:
        yield Finding(
            STRANGER,
            Severity.WARNS,
            remote,
            f"there are records on {target}, and this mirror has no position in its source: all of the "
            "source's records would come behind them, those that are there a second time",
            remedy,
        )


def _notes(survey: FlowSurvey) -> Iterator[Finding]:
    """Remarks that need no action."""
    for note in survey.topics.notes:
        yield Finding(TOPIC, Severity.NOTE, note.name, note.text)
    if survey.topics.held is not None:
        yield Finding(NO_DELETES, Severity.WARNS, "deletes", f"no topic is deleted: {survey.topics.held}")


def _missing_topics(survey: FlowSurvey) -> Iterator[Finding]:
    unknown = UNKNOWN_TOPIC_OR_PARTITION
    missing = [name for name in sorted(survey.named) if survey.source.errors.get(name) == unknown]
    missing = [name for name in missing if name not in survey.source_topics]
    if missing:
        text = f"topics names it, and {survey.source.alias} has no such topic yet"
        yield Finding(MISSING_TOPIC, Severity.WARNS, some_of(missing), text, "is it spelled so?")
    if survey.idle_patterns:
        text = f"no topic of {survey.source.alias} matches this pattern of topics"
        yield Finding(
            MISSING_TOPIC, Severity.WARNS, ", ".join(survey.idle_patterns), text, "is it spelled so?"
        )


def _refused(survey: FlowSurvey, kinds: Collection[str]) -> Iterator[Finding]:
    """Refusals that no other finding explains: by policies, quotas, values that brokers don't take."""
    throttled = [refusal for refusal in survey.refusals if refusal.error.code == THROTTLING_QUOTA_EXCEEDED]
    for cluster, need, name, error in survey.refusals:
        if error.code == THROTTLING_QUOTA_EXCEEDED:
            continue
        if isinstance(error, AuthorizationError):
            side, right = survey.side(cluster), need.of(name)
            if not side.lacks(right):  # or it has been said
                yield missing_right(side, right)
        elif _EXPLAINED_BY.get(error.code) not in kinds and not (
            error.code == _INVALID_TOPIC and COLLIDING in kinds
        ):
            yield Finding(REFUSED, Severity.BLOCKS, name, str(error))
    for cluster in sorted({refusal.cluster for refusal in throttled}):
        names = [refusal.name for refusal in throttled if refusal.cluster == cluster]
        yield Finding(THROTTLED, Severity.NOTE, some_of(names), throttled_creation(cluster))


def _lost_records(survey: FlowSurvey) -> Iterator[Finding]:
    for partition, lost in survey.lost.items():
        reaction = survey.settings.copying.reactions.on_data_loss.value
        yield Finding(
            LOST_RECORDS,
            Severity.WARNS,
            str(partition),
            f"{lost:,} records behind the stored position are gone from {survey.source.alias}: "
            f"on.data.loss={reaction} decides",
        )


def _newer_positions(survey: FlowSurvey) -> Iterator[Finding]:
    reaction = survey.settings.copying.reactions.on_newer_position
    for text in newer_texts(survey.newer, reaction):
        yield Finding(NEWER_POSITION, Severity.WARNS, *text)


def _renamed(survey: FlowSurvey) -> Iterator[Finding]:
    if survey.renamed:
        topics = some_of(sorted(each.now for each in survey.renamed.values()))
        reaction = survey.settings.copying.reactions.on_topic_recreated
        yield Finding(RENAMED, Severity.WARNS, topics, *renamed_text(survey.renamed, reaction))


def _left_out(survey: FlowSurvey) -> Iterator[Finding]:
    if survey.left_out:
        topics = some_of(sorted({partition.topic for partition in survey.left_out}))
        yield Finding(
            LEFT_OUT,
            Severity.WARNS,
            topics,
            f"{sum(survey.left_out.values()):,} records of {topics} are left out, since this flow has not "
            "copied these partitions before (auto.offset.reset, start.at); what appears later is copied",
            "set start.at to earliest to copy them too",
        )


def _no_position(survey: FlowSurvey) -> Iterator[Finding]:
    for partition in sorted(survey.homeless):
        yield Finding(
            NO_POSITION,
            Severity.BLOCKS,
            str(partition),
            "no position of it is stored, and auto.offset.reset is none",
            "set auto.offset.reset to earliest or latest, or store a position",
        )


def _unknown_configs(survey: FlowSurvey) -> Iterator[Finding]:
    for it in unknown_configs(survey.target.alias, survey.configs.unknown):
        yield Finding(UNKNOWN_CONFIG, Severity.WARNS, it.what, it.reason, it.remedy)


def _refused_configs(survey: FlowSurvey) -> Iterator[Finding]:
    target = survey.target.alias
    for name, text in created_without(survey.created_without):
        yield Finding(REFUSED_CONFIG, Severity.WARNS, name, text, remedy_of_refused(target, name))
    failed = failed_configs(survey.settings.config_filter.failed)
    for it in (*refused_configs(target, survey.unaltered), *failed):
        yield Finding(REFUSED_CONFIG, Severity.WARNS, it.what, it.reason, it.remedy)


def _smaller_limits(survey: FlowSurvey) -> Iterator[Finding]:
    topics: dict[tuple[int, int], list[str]] = {}
    for topic, sizes in survey.smaller_limits.items():
        topics.setdefault(sizes, []).append(topic)
    target = survey.target.alias
    for (here, there), of in sorted(topics.items()):
        yield Finding(
            SMALLER_LIMIT,
            Severity.WARNS,
            some_of(of),
            f"{target} takes batches of {there:,} bytes there (max.message.bytes) and the source {here:,}: "
            "a partition stops at its first larger batch, and no sync of configs changes that",
            f"set max.message.bytes to {here} on {target}",
        )


def _acls(survey: FlowSurvey) -> Iterator[Finding]:
    if survey.acls.unavailable is not None:
        yield Finding(
            ACLS,
            Severity.NOTE,
            "ACLs",
            f"there are none to sync: {survey.acls.unavailable}",
            "set sync.topic.acls.enabled=false",
        )


def _warnings(survey: FlowSurvey, reported: Collection[str]) -> Iterator[Finding]:
    """The warnings of the parts that are not reported yet."""
    parts: Sequence[tuple[str, Sequence[str]]] = (
        (TOPIC, [*map(str, survey.untold.values())]),
        (ACLS, survey.acls.warnings),
        (ACCOUNTS, survey.accounts.warnings),
    )
    for kind, warnings in parts:
        for warning in warnings:
            if warning not in reported:
                yield Finding(kind, Severity.WARNS, kind, warning)


def _transforms(survey: FlowSurvey) -> Iterator[Finding]:
    """Say what the flow's transforms do, and to which topics."""
    settings = survey.settings
    chain, policy = settings.copying.transforms, settings.policy
    if chain is None:
        return
    text = "; ".join(map(str, chain.links))
    changed = [topic for topic, _ in survey.mirrored if transforms_of(settings, topic) is not None]
    if chain.changes_records:
        decoded = "decoded" if chain.opens_values else "not decoded"
        text += f". They apply to {counted(len(changed), 'topic')}; keys and values are {decoded}"
    if isinstance(policy, RoutedPolicy):
        source = settings.flow.source
        named = [
            f"{topic} to {name}" for topic, name in survey.mirrored if policy.unrouted(source, topic) != name
        ]
        text += f". They rename {some_of(named) if named else 'no topic'}"
    yield Finding(TRANSFORMS, Severity.NOTE, TRANSFORMS, text)


def _switched_off(survey: FlowSurvey) -> Iterator[Finding]:
    """List what is not looked for again while the mirror runs, as with Java's."""
    if survey.settings.refresh_topics_interval_s is None:
        yield Finding(NEVER_AGAIN, Severity.NOTE, "refresh.topics.enabled", LATER_TOPICS)
    if not survey.refreshes_groups:
        yield Finding(NEVER_AGAIN, Severity.NOTE, "refresh.groups.enabled", LATER_GROUPS)


_JUDGES: Final[Sequence[Callable[[FlowSurvey], Iterable[Finding]]]] = (
    old_brokers,
    missing_rights,
    at_least_once,
    missing_brokers,
    _blocked,
    _colliding,
    one_cluster,
    other_clusters,
    _unfit,
    _strangers,
    _missing_topics,
    _no_position,
    _lost_records,
    _left_out,
    _newer_positions,
    _renamed,
    _unknown_configs,
    _refused_configs,
    _smaller_limits,
    _notes,
    _acls,
    _transforms,
    _switched_off,
    preserved_topics,
)
