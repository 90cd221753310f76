"""One flow's connectors, begun and ended together."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from sparkmirror.domain.rate_limits import RateLimits
from sparkmirror.engine.session import Session
from sparkmirror.runtime.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, SourceRun
from sparkmirror.runtime.flow_settings import FlowSettings
from sparkmirror.runtime.periodic import PeriodicThread

_log = logging.getLogger(__name__)


class FlowRun:
    """Once begun and once ended; who takes a flow up again makes another one."""

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
        """`may_run` is asked before anything is done."""
        for thread in self._threads:
            thread.run_only_while(may_run)
            thread.start()

    def change_limits(self, limits: RateLimits) -> None:
        """From now on. Safe in any thread."""
        if self._source is not None:
            self._source.limits.change(limits)

    def stop(self) -> None:
        """Ask it to end; `join` waits."""
        for thread in self._threads:
            thread.stop()

    def join(self, deadline: float) -> None:
        """Until it has ended, or until this time of the monotonic clock."""
        for thread in self._threads:
            if not thread.join(max(0.0, deadline - time.monotonic())):
                _log.warning("%s did not end in time", thread.name)

    @property
    def _threads(self) -> list[PeriodicThread]:
        return [thread for connector in self.connectors for thread in connector.threads]
