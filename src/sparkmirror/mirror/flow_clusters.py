"""Learns between which clusters a flow is, and refuses others than those that it copied between before."""

import threading
from collections.abc import Collection, Iterator
from contextlib import closing

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ClusterChangedError, SameClusterError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.domain.known_brokers import ANY, Meant
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.plan.changed_clusters import changed_clusters, remembered_clusters, was_elsewhere
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.rings import OneCluster, mirrors_by_pattern, one_cluster_now, same_cluster
from sparkmirror.settings.topic_selection import Selection
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.cluster_ids import ClusterIds, cluster_ids_record
from sparkmirror.storage.events import EventKind, Note, no_note
from sparkmirror.storage.positions import forgetting, read_all_positions
from sparkmirror.storage.seen_topics import first_start_forgotten


class FlowClusters:
    """Thread-safe: the first connector that calls `require` asks both clusters, the others wait for it."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        accepted: Collection[Alias] = (),
        note: Note = no_note,
    ) -> None:
        """`accepted` are the clusters that an operator has accepted, whatever they were before."""
        self._on = on
        self._connector = connector
        self._accepted = accepted
        self._note = note
        self._log = flow_log(__name__, on.flow, connector.name)
        self._owner = owner_of(on.worker.offset_topic.name, connector.name)
        self._topic = StateTopic.ATTEMPTS.of(on.flow.source)
        self._lock = threading.Lock()
        self._ids: ClusterIds | None = None
        self._remembered: ClusterIds | None = None
        self.trouble: str | None = None
        """Why the flow may not begin. Safe in any thread."""

    def require(self) -> None:
        """Return when both clusters are those that are meant, to which connections are held from then on.

        Raises ClusterChangedError, SameClusterError, KafkaError.
        """
        with self._lock:
            if self._ids is not None:
                return
            try:
                self._ids = self._checked()
            except (ClusterChangedError, SameClusterError) as error:
                if self.trouble is None:
                    self._note(EventKind.INCIDENT, str(error), self._on.flow)
                self.trouble = str(error)
                raise
            self.trouble = None
            for settings, cluster in self._sides(self._ids):
                _hold(settings, cluster)

    def record(self, *, can_remember: bool) -> None:
        """Remember the ids; after a change begin as at a first start. The flow's own topics are there.

        Raises KafkaError.
        """
        ids, before = self._ids, self._remembered
        if ids is None or ids == before:
            return
        if before is not None and _changes(before, ids):
            self._start_over()
        self.remember(can_remember=can_remember)

    def remember(self, *, can_remember: bool = True) -> None:
        """Write the ids, also where their record was lost. Raises KafkaError."""
        if self._ids is None or not can_remember:
            return
        with closing(TopicWriter(self._on.worker_client)) as writer:
            writer.write(self._topic, [cluster_ids_record(self._owner, self._ids)])
        self._remembered = self._ids

    def release(self) -> None:
        """Allow other clusters again, before the next run asks which they are."""
        for settings, _ in self._sides(ClusterIds("", "")):
            _hold(settings, ANY)

    def _sides(self, ids: ClusterIds) -> Iterator[tuple[ConnectionSettings, Meant]]:
        source, target = self._on.flow
        yield self._connector.source_admin, Meant(ids.source, source)
        yield self._connector.target_admin, Meant(ids.target, target)

    def _checked(self) -> ClusterIds:
        connector = self._connector
        ids = ClusterIds(
            read_metadata(connector.source_admin, ()).cluster_id,
            read_metadata(connector.target_admin, ()).cluster_id,
        )
        self._remembered = remembered_clusters(self._on, connector, ids)
        for changed in changed_clusters(self._on, connector, self._remembered, ids):
            if not self._accepts(changed.alias):
                raise changed.error
        if ids.source and ids.source == ids.target and (refused := self._refused(ids.source)) is not None:
            raise SameClusterError(str(refused))
        return ids

    def _accepts(self, alias: str) -> bool:
        reaction = self._connector.settings.copying.reactions.on_cluster_change
        return alias in self._accepted or reaction is OnClusterChange.CONTINUE

    def _refused(self, cluster_id: str) -> OneCluster | None:
        """Say why nothing may be mirrored within this one cluster."""
        flow, settings = self._on.flow, self._connector.settings
        with closing(Admin(self._connector.source_admin)) as source:
            topics = source.partition_counts()
        if mirrors_by_pattern(settings, [topic for topic, _ in Selection(settings).select(topics).pairs]):
            return same_cluster(flow, cluster_id)
        is_known = self._remembered is not None or self._accepts(flow.target)
        if not is_known and was_elsewhere(self._on, self._connector, topics):
            return one_cluster_now(flow, cluster_id)
        return None

    def _start_over(self) -> None:
        where = self._on.positions_of(self._connector.name)
        client, topic, name, source = where
        stale = read_all_positions(*where)
        if stale:
            with closing(TopicWriter(client)) as writer:
                writer.write(topic, [forgetting(name, source, partition) for partition in stale])
            with closing(TopicWriter(client)) as writer:
                writer.write(self._topic, [first_start_forgotten(self._owner)])
        text = (
            f"begins as at a first start: {len(stale)} positions are about another cluster, and are dropped"
        )
        self._log.warning("%s", text)
        self._note(EventKind.INCIDENT, f"cluster-changed: {text}", self._on.flow)


def _changes(before: ClusterIds, now: ClusterIds) -> bool:
    return any(old and new and old != new for old, new in zip(before, now, strict=True))


def _hold(settings: ConnectionSettings, cluster: Meant) -> None:
    network_of(settings).known_brokers.mean(settings.bootstrap_servers, cluster)
