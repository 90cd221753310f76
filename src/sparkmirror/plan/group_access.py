"""Finds consumer groups that a flow can't use, for want of a right or because of an application."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.rights import Need
from sparkmirror.groups.lag_group_use import CHOOSE_ANOTHER, used_by_others
from sparkmirror.kafka.admin.cluster_survey import ClusterSurvey
from sparkmirror.kafka.admin.tried_rights import is_denied
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.groups.consumer_groups import Groups
from sparkmirror.plan.access_findings import missing_right
from sparkmirror.plan.flow_survey import FlowSurvey
from sparkmirror.settings.checkpoint import named_groups, selected_groups
from sparkmirror.settings.configured import ConfiguredCheckpoint, ConfiguredSource

LAG_GROUP: Final = "group of others"
_ASKED_MAX: Final = 100
"""Groups that are asked about, one by one: who lacks a right to one lacks it to most."""


class _Wanted(NamedTuple):
    """A right on each of these groups of one cluster."""

    side: ClusterSurvey
    client: ConnectionSettings
    need: Need
    groups: Sequence[GroupId]


def missing_group_rights(
    survey: FlowSurvey, connector: ConfiguredSource, checkpoint: ConfiguredCheckpoint | None
) -> Sequence[Finding]:
    """Raises KafkaError when groups can't be listed."""
    found = []
    for side, client, need, groups in _wanted(survey, connector, checkpoint):
        with closing(Cluster(client)) as cluster:
            denied = [group for group in groups if is_denied(cluster, need.of(group))]
        found += [missing_right(side, need.of(group), Severity.WARNS) for group in denied]
    return found


def lag_group_findings(survey: FlowSurvey, connector: ConfiguredSource) -> Sequence[Finding]:
    """Find a group for the mirror's lag that an application uses. Raises KafkaError."""
    name = connector.settings.lag_group_id
    if not name:
        return []
    with closing(Groups(connector.source_admin)) as groups:
        try:
            use = used_by_others(groups, GroupId(name))
        except AuthorizationError:
            return []  # a missing right is another finding
    text = f"lag.group.id: the group on {survey.source.alias} {use}; the mirror commits nothing for it"
    return [] if use is None else [Finding(LAG_GROUP, Severity.BLOCKS, name, text, CHOOSE_ANOTHER)]


def _wanted(
    survey: FlowSurvey, connector: ConfiguredSource, checkpoint: ConfiguredCheckpoint | None
) -> Iterator[_Wanted]:
    if connector.settings.lag_group_id:
        lag = [GroupId(connector.settings.lag_group_id)]
        yield _Wanted(survey.source, connector.source_admin, Need.READ_GROUP, lag)
    if checkpoint is None:
        return
    followed = _followed(checkpoint)
    yield _Wanted(survey.source, checkpoint.source_admin, Need.DESCRIBE_GROUP, followed)
    if checkpoint.settings.sync_group_offsets_interval_s is not None:
        yield _Wanted(survey.target, checkpoint.target_admin, Need.READ_GROUP, followed)


def _followed(checkpoint: ConfiguredCheckpoint) -> Sequence[GroupId]:
    """Return the groups that the filter selects, including named ones that no cluster lists."""
    with closing(Groups(checkpoint.source_admin)) as groups:
        listed = groups.listed()
    committing = [group for group, each in listed.items() if each.commits_offsets]
    found = selected_groups(checkpoint.settings, committing).groups
    return sorted({*found, *named_groups(checkpoint.settings)})[:_ASKED_MAX]
