"""Dedicated mode: several flows, one Spark session, one orderly end."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.metrics import ConnectorReading
from sparkmirror.domain.rate_limits import RateLimits
from sparkmirror.engine.session import Session, default_master
from sparkmirror.runtime.connector_runs import CheckpointRun, ConnectorRun, HeartbeatRun, SourceRun
from sparkmirror.runtime.flow_settings import FlowSettings, SourceConnector
from sparkmirror.runtime.rate_limits import CurrentLimits

_log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 7.5
"""All flows together. Spark's JVM takes up to 2 s more; supervisors give ten before they kill."""
_SLOTS_MIN = 16


class MirrorMaker:
    """`start` returns when Spark runs, `wait` when `stop` was called; `close` ends everything."""

    def __init__(self, flows: Sequence[FlowSettings], spark: Mapping[str, str], log_file: Path) -> None:
        self._flows = flows
        self._spark = dict(spark)
        self._log_file = log_file
        self._session: Future[Session] = Future()
        self._stopping = threading.Event()
        self._limits: dict[Flow, CurrentLimits] = {}
        self._runs = self._make_runs()
        self._threads = [thread for run in self._runs for thread in run.threads]

    def start(self) -> None:
        """Flows reach out to their clusters while Spark starts. Raises SparkmirrorError when Spark can't."""
        for thread in self._threads:
            thread.start()
        master = self._spark.pop("spark.master", None) or default_master(self._wanted_slots())
        if master.startswith("spark://"):
            # Or the first application takes every core of the cluster, and nobody else gets any.
            self._spark.setdefault("spark.cores.max", str(max(1, self._tasks_max())))
        began = time.monotonic()
        self._session.set_result(Session.start(master, self._spark, self._log_file))
        _log.info(
            "Spark runs on %s after %.1f s; its log is %s", master, time.monotonic() - began, self._log_file
        )

    def wait(self, each_second: Callable[[], None] = lambda: None) -> None:
        """Raises SparkmirrorError when Spark ended by itself."""
        session = self._session.result()
        while not self._stopping.wait(1.0):
            if not session.is_alive:
                raise SparkmirrorError(f"Spark's JVM ended unexpectedly; its log is {self._log_file}")
            each_second()

    def change_limits(self, limits: Mapping[Flow, RateLimits]) -> None:
        """From now on; flows that don't run, or are not named, are left alone. Safe in any thread."""
        for flow, current in self._limits.items():
            if flow in limits:
                current.change(limits[flow])

    def stop(self) -> None:
        """Make `wait` return. Safe in a signal handler."""
        self._stopping.set()

    def close(self) -> None:
        """Stop every flow in order, then Spark, within about ten seconds."""
        if not self._session.done():
            self._session.set_exception(SparkmirrorError("Spark is not running"))
        for thread in self._threads:
            thread.stop()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for thread in self._threads:
            if not thread.join(max(0.0, deadline - time.monotonic())):
                _log.warning("%s did not end in time", thread.name)
        if self._session.exception() is None:
            self._session.result().close()

    def readings(self) -> list[ConnectorReading]:
        """What `/metrics` tells of every connector. Safe in any thread."""
        return [reading for run in self._runs if (reading := run.reading())]

    def _make_runs(self) -> list[ConnectorRun]:
        runs: list[ConnectorRun] = []
        for flow in self._flows:
            runs.append(HeartbeatRun(flow, flow.heartbeat))
            if flow.checkpoint is not None:
                runs.append(CheckpointRun(flow, flow.checkpoint))
            elif flow.source is not None:
                _log.info("%s emits no checkpoints: %s", flow.flow, flow.checkpoint_off)
            if flow.source is not None:
                runs.append(self._source_run(flow, flow.source))
        return runs

    def _source_run(self, flow: FlowSettings, connector: SourceConnector) -> SourceRun:
        run = SourceRun(flow, connector, self._session, self._slots_for(connector))
        self._limits[flow.flow] = run.limits
        return run

    def _slots_for(self, connector: SourceConnector) -> Callable[[Session], int]:
        """Its share of Spark's slots: tasks never end by themselves, so no flow may take all of them."""
        return lambda session: slots_share(connector.settings.tasks_max, self._tasks_max(), session.slots)

    def _tasks_max(self) -> int:
        return sum(flow.source.settings.tasks_max for flow in self._flows if flow.source is not None)

    def _wanted_slots(self) -> int:
        # Twice, because a cancelled task holds its slot for seconds while the next one already runs.
        return max(_SLOTS_MIN, 2 * self._tasks_max())


def slots_share(tasks_max: int, all_tasks_max: int, slots: int) -> int:
    """How many of the slots a connector may take, by the tasks that it and all of them together may have."""
    return max(1, slots * tasks_max // all_tasks_max)
