"""Tells whether other clusters answer for a flow than those that it copied between before."""

import time
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.incidents import ChangedCluster
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import Configured, ConfiguredSource, FlowWorker
from sparkmirror.settings.internal_topics import offset_syncs_topic
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.cluster_ids import ClusterIds, read_cluster_ids
from sparkmirror.storage.progress_reader import ProgressReader

WATCHED_S: Final = 15.0
"""The time that another mirror's reports are watched: its tasks report at least each eleven seconds."""
_TASKS_END_WITHIN: Final = 0.2
"""The part of that time in which tasks may still report whose mirror was killed."""


def remembered_clusters(
    on: FlowWorker, connector: Configured, now: ClusterIds, watched_s: float = WATCHED_S
) -> ClusterIds | None:
    """Return the clusters that the flow copied between last; None at its first start. Raises KafkaError.

    Where the target remembers none, the flow may have copied into what is its source `now`: both addresses
    are exchanged, unless another mirror, which names the two clusters the other way round, still runs.
    """
    found = _remembered(on.worker_client, on, connector)
    if found is not None:
        return found
    other = copied_into(on, connector, now.source)
    if other is None or not isinstance(connector, ConfiguredSource):
        return other
    return None if _still_runs(on, connector, watched_s) else other


def copied_into(on: FlowWorker, connector: Configured, source_id: str) -> ClusterIds | None:
    """Return what the source remembers if a flow of this name has copied into it. Raises KafkaError."""
    if connector.source_admin is None or not source_id:
        return None
    with closing(Admin(connector.source_admin)) as admin:
        if StateTopic.ATTEMPTS.of(on.flow.source) not in admin.partition_counts():
            return None
    other = _remembered(connector.source_admin, on, connector)
    return other if other is not None and other.target == source_id else None


def changed_clusters(
    on: FlowWorker, connector: Configured, before: ClusterIds | None, now: ClusterIds
) -> Iterator[ChangedCluster]:
    """Find the aliases at whose addresses another cluster answers than `before`."""
    admins = connector.source_admin, connector.target_admin
    for alias, old, new, admin in zip(on.flow, before or ("", ""), now, admins, strict=True):
        if admin is not None and old and new and old != new:
            yield ChangedCluster(alias, old, new, admin.servers)


def was_elsewhere(on: FlowWorker, connector: ConfiguredSource, topics: Collection[str]) -> bool:
    """Tell whether the target was another cluster before; `topics` are those of source and target, now one.

    Then there are offset syncs of the flow, which are on its source, and no positions.
    """
    syncs = offset_syncs_topic(on, connector)
    if syncs is None or syncs.cluster != on.flow.source:
        return False
    return syncs.creation.name in topics and on.worker.offset_topic.name not in topics


def _remembered(settings: ConnectionSettings, on: FlowWorker, connector: Configured) -> ClusterIds | None:
    owner = owner_of(on.worker.offset_topic.name, connector.name)
    try:
        return read_cluster_ids(settings, StateTopic.ATTEMPTS.of(on.flow.source), owner)
    except AuthorizationError:  # without the right to read them nothing is known of former clusters
        return None


def _still_runs(on: FlowWorker, connector: ConfiguredSource, watched_s: float) -> bool:
    """Whether the mirror that has copied into the source still reports there, or has not begun to."""
    topic = StateTopic.PROGRESS.of(on.flow.source)
    with closing(ProgressReader(connector.source_admin, topic, may_be_missing=True)) as reader:
        reader.catch_up()
        if _has_stopped(reader, connector.name):
            return False
        if connector.name not in reader.job_epochs:
            return True
        flow_log(__name__, on.flow, connector.name).info(
            "%s has records of a mirror that copied into it: watching for %.0f s whether it still runs",
            on.flow.source,
            watched_s,
        )
        _read_for(reader, watched_s * _TASKS_END_WITHIN)
        before = _last_report(reader, connector.name)
        deadline = time.monotonic() + watched_s * (1 - _TASKS_END_WITHIN)
        while (left_s := deadline - time.monotonic()) > 0:
            reader.poll(min(1.0, left_s))
            if _last_report(reader, connector.name) != before:
                return not _has_stopped(reader, connector.name)
    return False


def _read_for(reader: ProgressReader, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left_s := deadline - time.monotonic()) > 0:
        reader.poll(left_s)


def _has_stopped(reader: ProgressReader, connector: ConnectorName) -> bool:
    job, said = reader.job_epochs.get(connector), reader.troubles.get(connector)
    return (job is not None and job.stopped) or (said is not None and said.is_stopped)


def _last_report(reader: ProgressReader, connector: ConnectorName) -> tuple[object, float]:
    reports = [each.updated_at for (name, _), each in reader.poll().items() if name == connector]
    reports += [each.updated_at for (name, _), each in reader.tasks.items() if name == connector]
    return reader.job_epochs.get(connector), max(reports, default=0.0)
