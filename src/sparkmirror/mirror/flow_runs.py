"""Runs the connectors of a flow."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.mirror.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, SourceRun
from sparkmirror.mirror.flow_clusters import FlowClusters, OppositeClusters
from sparkmirror.mirror.shared_targets import SharedTargets
from sparkmirror.periodic.jobs import start_all, stop_all
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.settings.configured import ConfiguredFlow
from sparkmirror.spark.session import Session


class FlowRun:
    """Single use: create a new FlowRun to restart a flow."""

    def __init__(
        self,
        flow: ConfiguredFlow,
        session: "Future[Session]",
        slots_of: Callable[[Session], int],
        accepted: Collection[Alias] = (),
        shared: SharedTargets | None = None,
        opposite: ConfiguredFlow | None = None,
    ) -> None:
        """`accepted` are the clusters that an operator has accepted, whatever they were before.

        `shared` is one for all flows of this process. The `opposite` flow knows the clusters of a flow that
        only emits heartbeats.
        """
        self._shown = flow.shown
        self._settings = None if flow.source is None else flow.source.settings
        self._source = (
            None if flow.source is None else SourceRun(flow, flow.source, session, slots_of, accepted, shared)
        )
        own = None if self._source is None else self._source.clusters
        heard = own or _opposite_clusters(flow, opposite, accepted)
        self._configured = {} if flow.source is None else flow.shown.get(flow.source.name, {})
        self.connectors: Sequence[ConnectorRun] = [
            HeartbeatRun(flow, flow.heartbeat, heard, accepted, remembers=not flow.is_copied_back),
            *([] if flow.checkpoint is None else [CheckpointRun(flow, flow.checkpoint, own, accepted)]),
            *([] if self._source is None else [self._source]),
        ]

    def looks(self) -> list[ConnectorLook]:
        """Return what the flow's connectors know, with their settings. Thread-safe."""
        looks = [look for connector in self.connectors if (look := connector.look()) is not None]
        return [replace(look, settings=self._shown.get(look.connector, {})) for look in looks]

    def start(self, may_run: Callable[[], bool], is_elected: Callable[[], bool]) -> None:
        """`may_run` is checked before each job of a connector, `is_elected` when another process copies."""
        if self._source is not None:
            self._source.configured(self._configured)
        for connector in self.connectors:
            start_all(connector.threads, may_run, is_elected)

    @property
    def failure(self) -> SparkmirrorError | None:
        """Why one of its connectors can't run before an operator changes something."""
        threads = (thread for connector in self.connectors for thread in connector.threads)
        return next((thread.failure for thread in threads if thread.failure is not None), None)

    @property
    def up(self) -> Mapping[Alias, bool | None]:
        """Whether the clusters that it reads or mirrors into answer; None before the first request."""
        return {} if self._source is None else self._source.up

    @property
    def changed(self) -> Collection[Alias]:
        """The aliases at whose addresses another cluster answers than the one that is meant."""
        return () if self._source is None else self._source.changed

    @property
    def continues_with_another(self) -> bool:
        """Whether a cluster has changed, and the flow is to restart with the one that answers."""
        reactions = None if self._settings is None else self._settings.copying.reactions
        return bool(self.changed and reactions and reactions.on_cluster_change is OnClusterChange.CONTINUE)

    def release(self) -> None:
        """Let the next run ask again which clusters these are."""
        if self._source is not None:
            self._source.clusters.release()

    def change_limits(self, limits: RateLimits) -> None:
        """Replace the rate limits. Safe in any thread."""
        if self._source is not None:
            self._source.limits.change(limits)


def _opposite_clusters(
    flow: ConfiguredFlow, opposite: ConfiguredFlow | None, accepted: Collection[Alias]
) -> OppositeClusters | None:
    if opposite is None or opposite.source is None:
        return None
    return OppositeClusters(FlowClusters(opposite, opposite.source, accepted), flow)


def end_flows(runs: Iterable[FlowRun]) -> None:
    """Stop all flows in order, at the same time, within 7.5 s."""
    stop_all([thread for run in runs for connector in run.connectors for thread in connector.threads])
