"""Starts and stops the connectors of one flow together."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from sparkmirror.connectors.flow_settings import FlowSettings
from sparkmirror.connectors.periodic import begin, end
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.mirror.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, SourceRun
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.spark.session import Session


class FlowRun:
    """Single use: create a new FlowRun to restart a flow."""

    def __init__(
        self, flow: FlowSettings, session: "Future[Session]", slots_of: Callable[[Session], int]
    ) -> None:
        self._source = None if flow.source is None else SourceRun(flow, flow.source, session, slots_of)
        self.connectors: Sequence[ConnectorRun] = [
            HeartbeatRun(flow, flow.heartbeat),
            *([] if flow.checkpoint is None else [CheckpointRun(flow, flow.checkpoint)]),
            *([] if self._source is None else [self._source]),
        ]

    def start(self, may_run: Callable[[], bool] = lambda: True) -> None:
        """`may_run` is checked before each job of a connector."""
        for connector in self.connectors:
            begin(connector.threads, may_run)

    @property
    def failure(self) -> SparkmirrorError | None:
        """Why one of its connectors can't run before an operator changes something."""
        threads = (thread for connector in self.connectors for thread in connector.threads)
        return next((thread.failure for thread in threads if thread.failure is not None), None)

    def change_limits(self, limits: RateLimits) -> None:
        """Replace the rate limits. Safe in any thread."""
        if self._source is not None:
            self._source.limits.change(limits)


def end_flows(runs: Iterable[FlowRun]) -> None:
    """Stop all flows in order, at the same time, within 7.5 s."""
    end([thread for run in runs for connector in run.connectors for thread in connector.threads])
