"""Finds clusters that are not those meant, or have too few brokers, from a `FlowSurvey`. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.domain.quantities import some_of
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.settings.rings import mirrors_by_pattern, one_cluster_now, same_cluster

TOO_MANY_REPLICAS: Final = "too many replicas"
SAME_CLUSTER: Final = "same cluster"
CLUSTER_CHANGED: Final = "cluster changed"


def missing_brokers(survey: FlowSurvey) -> Iterator[Finding]:
    wanted: dict[tuple[Alias, str, int], list[str]] = {}
    for new in survey.topics.creates:
        key = survey.target.alias, "replication.factor", new.replication_factor
        wanted.setdefault(key, []).append(new.name)
    for own in survey.missing:
        key = own.cluster, own.replicas_setting, own.creation.replication_factor
        wanted.setdefault(key, []).append(own.creation.name)
    dispensable = {own.name for own in survey.own if own.takes_default or not own.is_needed}
    return too_many_replicas(
        wanted, {side.alias: len(side.brokers) for side in (survey.source, survey.target)}, dispensable
    )


def too_many_replicas(
    wanted: Mapping[tuple[Alias, str, int], Sequence[str]],
    brokers_of: Mapping[Alias, int],
    dispensable: Collection[str] = (),
) -> Iterator[Finding]:
    """`wanted`: the topics to make, by cluster, setting, and number of replicas that it asks for.

    Data flows without those that are `dispensable`.
    """
    for (cluster, setting, replicas), topics in wanted.items():
        brokers = brokers_of[cluster]
        if brokers and replicas > brokers:
            yield Finding(
                TOO_MANY_REPLICAS,
                Severity.WARNS if set(topics) <= set(dispensable) else Severity.BLOCKS,
                setting,
                f"{some_of(topics)} can't have {replicas} replicas on {cluster}, which has {brokers} "
                f"{'broker' if brokers == 1 else 'brokers'}",
                f"set {setting} to {brokers}, or to -1 for the broker's default",
            )


def one_cluster(survey: FlowSurvey) -> Iterator[Finding]:
    """Find a source and target that are one cluster.

    If a pattern matches copies too, every refresh would mirror the last one's.
    """
    source, target = survey.source, survey.target
    if not source.cluster_id or source.cluster_id != target.cluster_id:
        return
    flow = Flow(source.alias, target.alias)
    if mirrors_by_pattern(survey.settings.topic_filter, [topic for topic, _ in survey.mirrored]):
        found = same_cluster(flow, source.cluster_id)
    elif survey.was_elsewhere:
        found = one_cluster_now(flow, source.cluster_id)
    else:
        return
    yield Finding(SAME_CLUSTER, Severity.BLOCKS, _servers(target.alias), found.why, found.remedy)


def other_clusters(survey: FlowSurvey) -> Iterator[Finding]:
    continues = survey.settings.copying.reactions.on_cluster_change is OnClusterChange.CONTINUE
    for each in survey.changed:
        severity = Severity.WARNS if continues else Severity.BLOCKS
        yield Finding(CLUSTER_CHANGED, severity, _servers(each.alias), each.why, each.remedy)


def _servers(alias: str) -> str:
    return f"{alias}.bootstrap.servers"
