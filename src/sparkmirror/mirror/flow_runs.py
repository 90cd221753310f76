"""Runs the connectors of flows, and shares flows between processes with the same file (KIP-710).

For every shared flow the nodes form a group on its target, with the name that Connect gives it. Its leader
runs the flow; the others have Spark ready and take over. The leader follows from the names of the flow and
the nodes, so that flows spread, and move only where a node has come or gone.
"""

import os
import socket
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.incidents import OnClusterChange
from sparkmirror.kafka.groups.worker_group import WorkerGroup
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.mirror.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, SourceRun
from sparkmirror.periodic.flow_log import LogOnce, flow_log
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
    ) -> None:
        """`accepted` are the clusters that a person has said to be meant, whatever they were before."""
        self._shown = flow.shown
        self._settings = None if flow.source is None else flow.source.settings
        self._source = (
            None if flow.source is None else SourceRun(flow, flow.source, session, slots_of, accepted)
        )
        require = (lambda: None) if self._source is None else self._source.clusters.require
        self._configured = {} if flow.source is None else flow.shown.get(flow.source.name, {})
        self.connectors: Sequence[ConnectorRun] = [
            HeartbeatRun(flow, flow.heartbeat, require),
            *([] if flow.checkpoint is None else [CheckpointRun(flow, flow.checkpoint, require)]),
            *([] if self._source is None else [self._source]),
        ]

    def looks(self) -> list[ConnectorLook]:
        """Return what the flow's connectors know, with their settings. Thread-safe."""
        looks = [look for connector in self.connectors if (look := connector.look()) is not None]
        return [replace(look, settings=self._shown.get(look.connector, {})) for look in looks]

    def start(self, may_run: Callable[[], bool] | None = None) -> None:
        """`may_run` is checked before each job of a connector; None where no election decides."""
        if self._source is not None:
            self._source.configured(self._configured)
        for connector in self.connectors:
            start_all(connector.threads, may_run)

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
        """Whether a cluster has changed, and the flow is to begin anew with the one that answers."""
        reactions = None if self._settings is None else self._settings.copying.reactions
        return bool(self.changed and reactions and reactions.on_cluster_change is OnClusterChange.CONTINUE)

    def release(self) -> None:
        """Let the next run find out anew which clusters there are."""
        if self._source is not None:
            self._source.clusters.release()

    def change_limits(self, limits: RateLimits) -> None:
        """Replace the rate limits. Safe in any thread."""
        if self._source is not None:
            self._source.limits.change(limits)


def end_flows(runs: Iterable[FlowRun]) -> None:
    """Stop all flows in order, at the same time, within 7.5 s."""
    stop_all([thread for run in runs for connector in run.connectors for thread in connector.threads])


class SharedFlows:
    """The flows that this node shares with others. One owner, who calls `check` about each second."""

    def __init__(self, flows: Sequence[ConfiguredFlow], make: Callable[[ConfiguredFlow], FlowRun]) -> None:
        name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._shared = [_SharedFlow(flow, make, name) for flow in flows]

    def start(self) -> None:
        for shared in self._shared:
            shared.group.start()

    def check(self) -> None:
        """Start and stop flows as this node leads them. Raises SparkmirrorError when it can't take part."""
        for shared in self._shared:
            shared.check()

    @property
    def runs(self) -> Mapping[Flow, FlowRun]:
        """The flows that this node runs. Safe in any thread."""
        return {shared.flow.flow: run for shared in self._shared if (run := shared.run) is not None}

    def begin_again(self, flows: Collection[Flow]) -> None:
        """Run these anew, whose runs have ended."""
        for shared in self._shared:
            if shared.flow.flow in flows:
                shared.run = None  # the next check starts another one

    def stop(self) -> None:
        """End all runs in order, so that other nodes take over."""
        end_flows(self.runs.values())
        for shared in self._shared:
            shared.group.leave()


class _SharedFlow:
    def __init__(self, flow: ConfiguredFlow, make: Callable[[ConfiguredFlow], FlowRun], node: str) -> None:
        self.flow = flow
        self.run: FlowRun | None = None
        self._make = make
        self._log = flow_log(__name__, flow.flow)
        self._troubles = LogOnce(self._log)
        self.group = WorkerGroup(flow.worker_client, flow.worker.group(spreads=True), node, lambda _: None)

    def check(self) -> None:
        if self.group.failure is not None:
            raise SparkmirrorError(f"{self.flow.flow}: {self.group.failure}")
        trouble = self.group.trouble  # without its group no node runs the flow
        self._troubles.log([] if trouble is None else [f"its group can't be reached: {trouble}"])
        leads = self.group.membership.is_leader
        if leads and self.run is None:
            self._log.info("runs on this node")
            self.run = self._make(self.flow)
            self.run.start(lambda: self.group.membership.is_leader)
        elif not leads and self.run is not None:
            self._log.info("does not run on this node any more")
            ended, self.run = self.run, None
            end_flows([ended])
