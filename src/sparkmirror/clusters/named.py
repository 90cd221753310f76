"""Manages named clusters, which outlive the command that started them: one folder each."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparkmirror.clusters.cluster_state import STATE_FILE, ClusterSpec
from sparkmirror.clusters.local import LocalCluster, Progress, start_clusters
from sparkmirror.domain.errors import ClusterStartError
from sparkmirror.java.folders import cache_folder, locked


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """The options of a command; None means "as it was before, else the default"."""

    name: str
    brokers: Literal[1, 3] | None = None
    settings: Mapping[str, str] | None = None

    def spec(self, before: ClusterSpec | None) -> ClusterSpec:
        known = before or ClusterSpec(self.name)
        brokers = known.brokers if self.brokers is None else self.brokers
        settings = known.settings if self.settings is None else self.settings
        return ClusterSpec(self.name, brokers, settings, known.heap_mb)


class NamedClusters:
    """The clusters of one folder; by default those of the user."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home or cache_folder() / "clusters"

    def all(self) -> list[LocalCluster]:
        """Return every cluster that was ever started and not deleted, by name."""
        names = sorted(file.parent.name for file in self._home.glob(f"*/{STATE_FILE}"))
        return [cluster for name in names if (cluster := self.find(name))]

    def find(self, name: str) -> LocalCluster | None:
        return LocalCluster.attach(self._home / name)

    def up(self, requests: Sequence[ClusterRequest], on_progress: Progress) -> list[LocalCluster]:
        """Start clusters that don't run, side by side, and the brokers that running ones lack.

        Raises ClusterStartError, also if a running cluster is asked for with other settings.
        """
        with self._lock(on_progress):
            running = [cluster for request in requests if (cluster := self._running(request))]
            for cluster in running:
                _complete(cluster, on_progress)
            up = {cluster.spec.name for cluster in running}
            plans = [self._plan(request) for request in requests if request.name not in up]
            start_clusters(plans, on_progress, outlives_us=True)
            return [cluster for request in requests if (cluster := self.find(request.name))]

    def down(self, names: Sequence[str], on_progress: Progress, *, delete_data: bool = False) -> None:
        """Stop these clusters; raises ClusterStartError for an unknown name, before stopping any."""
        with self._lock(on_progress):
            for cluster in [self.known(name) for name in names]:
                on_progress(f"Stopping cluster {cluster.spec.name}")
                cluster.stop()
                if delete_data:
                    shutil.rmtree(cluster.directory)

    def _running(self, request: ClusterRequest) -> LocalCluster | None:
        cluster = self.find(request.name)
        if cluster is None or not cluster.pids:
            return None
        if request.spec(cluster.spec) != cluster.spec:
            raise ClusterStartError(
                f"Cluster {request.name} is running with other settings. Stop it first: "
                f"sparkmirror clusters down {request.name}"
            )
        return cluster

    def _plan(self, request: ClusterRequest) -> tuple[ClusterSpec, Path]:
        before = self.find(request.name)
        return request.spec(before.spec if before else None), self._home / request.name

    def known(self, name: str) -> LocalCluster:
        """Raises ClusterStartError for an unknown name."""
        if cluster := self.find(name):
            return cluster
        known = ", ".join(cluster.spec.name for cluster in self.all()) or "none"
        raise ClusterStartError(f"There is no cluster named {name} (known: {known}).")

    def _lock(self, on_progress: Progress) -> AbstractContextManager[int]:
        waiting = "Another command is starting or stopping clusters, waiting for it …"
        return locked(self._home / ".lock", lambda: on_progress(waiting))


def _complete(cluster: LocalCluster, on_progress: Progress) -> None:
    for broker in cluster.brokers:
        if not broker.is_alive():
            on_progress(f"Starting broker {broker.node_id} of cluster {cluster.spec.name} again")
            cluster.start_broker(broker.node_id)
