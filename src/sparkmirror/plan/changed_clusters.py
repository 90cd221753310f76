"""Tells whether other clusters answer for a flow than those that it copied between before."""

import time
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.incidents import ChangedCluster
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.internal_topics import offset_syncs_topic
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.cluster_ids import ClusterIds, read_cluster_ids
from sparkmirror.storage.progress_reader import ProgressReader

_SILENT_AFTER_S: Final = 15.0
"""Tasks report at least each ten seconds."""


def remembered_clusters(on: FlowWorker, connector: ConfiguredSource, now: ClusterIds) -> ClusterIds | None:
    """Return the clusters that the flow copied between last; None at its first start. Raises KafkaError.

    Where the target remembers none, the flow may have copied into what is its source `now`: both addresses
    are exchanged, unless another mirror, which names the two clusters the other way round, still runs.
    """
    topic = StateTopic.ATTEMPTS.of(on.flow.source)
    owner = owner_of(on.worker.offset_topic.name, connector.name)
    found = read_cluster_ids(on.worker_client, topic, owner)
    if found is not None or topic not in _topics(connector.source_admin):
        return found
    other = read_cluster_ids(connector.source_admin, topic, owner)
    if other is None or other.target != now.source:
        return None
    is_others = _runs(connector.source_admin, StateTopic.PROGRESS.of(on.flow.source), connector.name)
    return None if is_others else other


def changed_clusters(
    on: FlowWorker, connector: ConfiguredSource, before: ClusterIds | None, now: ClusterIds
) -> Iterator[ChangedCluster]:
    """Find the aliases at whose addresses another cluster answers than `before`."""
    servers = connector.source_admin.servers, connector.target_admin.servers
    for alias, old, new, address in zip(on.flow, before or ("", ""), now, servers, strict=True):
        if old and new and old != new:
            yield ChangedCluster(alias, old, new, address)


def was_elsewhere(on: FlowWorker, connector: ConfiguredSource, topics: Collection[str]) -> bool:
    """Tell whether the target was another cluster before; `topics` are those of source and target, now one.

    Then there are offset syncs of the flow, which are on its source, and no positions.
    """
    syncs = offset_syncs_topic(on, connector)
    if syncs is None or syncs.cluster != on.flow.source:
        return False
    return syncs.creation.name in topics and on.worker.offset_topic.name not in topics


def _topics(settings: ConnectionSettings) -> Collection[str]:
    with closing(Admin(settings)) as admin:
        return admin.partition_counts()


def _runs(settings: ConnectionSettings, progress_topic: str, connector: ConnectorName) -> bool:
    """Whether a mirror runs that reports there, or has not reported yet."""
    with closing(ProgressReader(settings, progress_topic, may_be_missing=True)) as reader:
        reader.catch_up()
        job = reader.job_epochs.get(connector)
        reports = [each.updated_at for (name, _), each in reader.poll().items() if name == connector]
        reports += [each.updated_at for (name, _), each in reader.tasks.items() if name == connector]
        said = reader.troubles.get(connector)
    if said is not None and said.is_stopped:
        return False
    if job is None:
        return True
    last = max(reports, default=(job.written_ms or 0) / 1000)
    return not job.stopped and time.time() - last <= _SILENT_AFTER_S
