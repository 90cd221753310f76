"""Learns between which clusters a flow is, and refuses others than those that it copied between before."""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    ClusterChangedError,
    KafkaError,
    SameClusterError,
    SparkmirrorError,
)
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.domain.known_brokers import ANY, Meant
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Trouble, changed_cluster
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.plan.changed_clusters import (
    WATCHED_S,
    changed_clusters,
    copied_into,
    remembered_clusters,
    was_elsewhere,
)
from sparkmirror.settings.checkpoint import is_followed
from sparkmirror.settings.configured import (
    Configured,
    ConfiguredCheckpoint,
    ConfiguredHeartbeat,
    ConfiguredSource,
    FlowWorker,
)
from sparkmirror.settings.internal_topics import clusters_topic
from sparkmirror.settings.rings import OneCluster, mirrors_by_pattern, one_cluster_now, same_cluster
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import Selection
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.cluster_ids import ClusterIds, cluster_ids_record
from sparkmirror.storage.events import EventKind, Note, no_note
from sparkmirror.storage.own_topics import OwnTopics, watching
from sparkmirror.storage.positions import forgetting, read_all_positions
from sparkmirror.storage.seen_topics import first_start_forgotten
from sparkmirror.storage.troubles import Troubles

_ASKED_AGAIN_S: Final = 5.0


class FlowClusters:
    """Thread-safe: the first connector that calls `require` asks both clusters, the others wait for it."""

    def __init__(
        self,
        on: FlowWorker,
        connector: Configured,
        accepted: Collection[Alias] = (),
        note: Note = no_note,
        watched_s: float = WATCHED_S,
    ) -> None:
        """`accepted` are the clusters that an operator has accepted, whatever they were before.

        For `watched_s` it watches at a start whether another mirror still runs, where that matters.
        """
        self._on = on
        self._connector = connector
        self._accepted = accepted
        self._note = note
        self._watched_s = watched_s
        self._log = flow_log(__name__, on.flow, connector.name)
        self._owner = owner_of(on.worker.offset_topic.name, connector.name)
        self._topic = StateTopic.ATTEMPTS.of(on.flow.source)
        self._lock = threading.Lock()
        self._ids: ClusterIds | None = None
        self._remembered: ClusterIds | None = None
        self._held: Sequence[tuple[ConnectionSettings, Meant]] = ()
        self.meant: Collection[Alias] = ()
        """The aliases at whose addresses the clusters answered that are meant. Safe in any thread."""
        self.trouble: str | None = None
        """Why the flow may not begin. Safe in any thread."""
        self.may_be_exchanged = False
        """Whether a flow of this name has copied into the source, and the target has not answered yet."""

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
            self.trouble, self.may_be_exchanged, self.meant = None, False, self._on.flow
            self._held = tuple(self._sides(self._ids))
            for settings, cluster in self._held:
                _hold(settings, cluster)

    def record(self, *, can_remember: bool) -> None:
        """Remember the ids; after a change begin as at a first start. The flow's own topics are there.

        Raises KafkaError.
        """
        ids, before = self._ids, self._remembered
        if ids is None or self._known(ids) == before:
            return
        if before is not None and _changes(before, ids):
            self._start_over()
        self.remember(can_remember=can_remember)

    def remember(self, *, can_remember: bool = True) -> None:
        """Write the ids, also where their record was lost. Raises KafkaError."""
        if self._ids is None or not can_remember:
            return
        known = self._known(self._ids)
        try:
            with closing(TopicWriter(self._on.worker_client)) as writer:
                writer.write(self._topic, [cluster_ids_record(self._owner, known)])
        except AuthorizationError as error:
            self._log.warning("the next start will not know these clusters: %s", error)
        self._remembered = known

    def _known(self, ids: ClusterIds) -> ClusterIds:
        """Fill in what a cluster that does not answer was."""
        before = self._remembered or ids
        return ClusterIds(ids.source or before.source, ids.target or before.target)

    def release(self) -> None:
        """Allow other clusters again, before the next run asks which they are."""
        for settings in (self._connector.source_admin, self._connector.target_admin, self._on.worker_client):
            if settings is not None:
                _hold(settings, ANY)

    def changed(self) -> Iterator[Trouble]:
        """Ask the clusters again, and tell at whose address another one answers."""
        for settings, cluster in self._held:
            try:
                read_metadata(settings, ())
            except ClusterChangedError as error:
                yield changed_cluster(cluster.alias, str(error))
            except SparkmirrorError:  # it is told by what needs the cluster
                continue

    def _sides(self, ids: ClusterIds) -> Iterator[tuple[ConnectionSettings, Meant]]:
        """Return what is held to which cluster: Connect's worker may have other addresses of the target."""
        (source, target), connector, worker = self._on.flow, self._connector, self._on.worker_client
        if connector.source_admin is not None:
            yield connector.source_admin, Meant(ids.source, source)
        yield connector.target_admin, Meant(ids.target, target)
        is_other = worker.bootstrap_servers != connector.target_admin.bootstrap_servers
        if is_other and read_metadata(worker, ()).cluster_id == ids.target:
            yield worker, Meant(ids.target, target)

    def _id_of(self, settings: ConnectionSettings, alias: Alias) -> str:
        """Ask also a cluster that is not the one that connections are held to, if it is accepted."""
        try:
            return read_metadata(settings, ()).cluster_id
        except ClusterChangedError:
            if not self._accepts(alias):
                raise
            _hold(settings, ANY)
            return read_metadata(settings, ()).cluster_id

    def _checked(self) -> ClusterIds:
        """Compare those that answer, whether or not both do."""
        on, connector, (source, target) = self._on, self._connector, self._on.flow
        source_id, source_error = self._answer(connector.source_admin, source)
        target_id, target_error = self._answer(connector.target_admin, target)
        ids = ClusterIds(source_id, target_id)
        if target_error is not None:
            self.may_be_exchanged = copied_into(on, connector, source_id) is not None
            raise target_error
        self._compare(ids)
        is_needed = not isinstance(connector, ConfiguredHeartbeat)
        if source_error is not None and (is_needed or isinstance(source_error, ClusterChangedError)):
            raise source_error
        if source_id and source_id == target_id and (one := self._refused(source_id)) is not None:
            raise SameClusterError(str(one))
        return ids

    def _answer(self, settings: ConnectionSettings | None, alias: Alias) -> tuple[str, KafkaError | None]:
        """Return the id, empty where it is not known, and why the cluster does not tell it."""
        try:
            return ("" if settings is None else self._id_of(settings, alias)), None
        except KafkaError as error:
            return "", error

    def _compare(self, ids: ClusterIds) -> None:
        self._remembered = remembered_clusters(self._on, self._connector, ids, self._watched_s)
        found = changed_clusters(self._on, self._connector, self._remembered, ids)
        refused = [changed for changed in found if not self._accepts(changed.alias)]
        if self._remembered is not None:
            answered = {alias for alias, each in zip(self._on.flow, ids, strict=True) if each}
            self.meant = answered - {changed.alias for changed in refused}
        if refused:
            raise refused[0].error

    def _accepts(self, alias: str) -> bool:
        settings = self._connector.settings
        own = settings.copying.reactions if isinstance(settings, MirrorSourceSettings) else settings
        return alias in self._accepted or own.on_cluster_change is OnClusterChange.CONTINUE

    def _refused(self, cluster_id: str) -> OneCluster | None:
        """Say why nothing may be mirrored within this one cluster."""
        flow, connector = self._on.flow, self._connector
        if isinstance(connector, ConfiguredHeartbeat):  # which reads nothing
            return None
        with closing(Admin(connector.source_admin)) as source:
            topics = source.partition_counts()
        if mirrors_by_pattern(connector.settings.topic_filter, list(_mirrored(connector, topics))):
            return same_cluster(flow, cluster_id)
        is_known = self._remembered is not None or self._accepts(flow.target)
        if is_known or not isinstance(connector, ConfiguredSource):
            return None
        return one_cluster_now(flow, cluster_id) if was_elsewhere(self._on, connector, topics) else None

    def _start_over(self) -> None:
        if not isinstance(self._connector, ConfiguredSource):  # the others have no positions
            return
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


class ClustersAlone:
    """The clusters of a connector that runs without its flow's source connector.

    `thread` remembers them; everything else is safe in any thread.
    """

    def __init__(
        self,
        on: FlowWorker,
        connector: Configured,
        accepted: Collection[Alias],
        troubles: Troubles,
        *,
        remembers: bool = True,
    ) -> None:
        """`accepted` are the clusters that an operator has accepted, whatever they were before."""
        log = flow_log(__name__, on.flow, connector.name)
        self._clusters = FlowClusters(on, connector, accepted, troubles.note)
        self._topics = OwnTopics(
            [clusters_topic(on)] if remembers else [],
            replace(on.worker_client, alias=on.flow.target),
            connector.admin_plugins,
            log,
            troubles,
        )
        self._troubles = troubles
        self._remembers = remembers
        self.thread = PeriodicThread("clusters", log, self._prepare, lambda: None)

    @property
    def meant(self) -> Collection[Alias]:
        """Return what `FlowClusters.meant` is."""
        return self._clusters.meant

    def require(self) -> None:
        """Do as `FlowClusters.require`."""
        self._clusters.require()

    def _prepare(self) -> Iterable[Job]:
        self._clusters.require()
        compare = Job("compare clusters", _ASKED_AGAIN_S, self._compare, _ASKED_AGAIN_S)
        if not self._remembers:
            return (compare,)
        refused = self._topics.ensure().refused
        self._clusters.record(can_remember=not refused)
        return compare, watching(self._watch)

    def _compare(self) -> None:
        self._troubles.tell("clusters", self._clusters.changed())

    def _watch(self) -> None:
        had_refused = self._topics.result.refused
        now = self._topics.watch(time.monotonic())
        if now.remade or (had_refused and not now.refused):
            self._clusters.remember()


class OppositeClusters:
    """Lets a flow that only emits heartbeats wait where the opposite flow may not copy.

    Heartbeats are emitted while a cluster does not answer, and stop if it turns out to be another one. A
    target that does not answer is waited for where the source may be the former target.
    """

    def __init__(self, clusters: FlowClusters, on: FlowWorker) -> None:
        """`clusters` are the opposite flow's, and `on` is the flow of the heartbeats."""
        self._clusters = clusters
        self._flow = on.flow
        self._refusal: SparkmirrorError | None = None
        self._is_asked = False
        log = flow_log(__name__, on.flow)
        ask = Job("ask for clusters", _ASKED_AGAIN_S, self.ask)
        self.thread = PeriodicThread("clusters", log, lambda: (ask,), lambda: None)

    @property
    def meant(self) -> Collection[Alias]:
        """Return those of the clusters to which heartbeats may be written, as far as is known."""
        return self._flow if self._is_asked and self._refusal is None else self._clusters.meant

    def require(self) -> None:
        """Raises what refuses the opposite flow."""
        if not self._is_asked:
            self.ask()
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)

    def ask(self) -> None:
        """Ask both clusters, if they are not known yet. Called by `thread`."""
        try:
            self._clusters.require()
            self._refusal = None
        except (ClusterChangedError, SameClusterError) as error:
            self._refusal = error
        except SparkmirrorError as error:
            self._refusal = error if self._clusters.may_be_exchanged else None
        self._is_asked = True


def _mirrored(connector: ConfiguredSource | ConfiguredCheckpoint, topics: Mapping[str, int]) -> Iterator[str]:
    if isinstance(connector, ConfiguredSource):
        return (topic for topic, _ in Selection(connector.settings).select(topics).pairs)
    settings = connector.settings
    return (topic for topic in topics if is_followed(settings, topic))


def _changes(before: ClusterIds, now: ClusterIds) -> bool:
    return any(old and new and old != new for old, new in zip(before, now, strict=True))


def _hold(settings: ConnectionSettings, cluster: Meant) -> None:
    network_of(settings).known_brokers.mean(settings.bootstrap_servers, cluster)
