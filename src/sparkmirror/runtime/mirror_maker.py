"""Dedicated mode: several flows, one Spark session, one orderly end."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from sparkmirror.domain.assignment import slots_share
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.metrics import ConnectorReading
from sparkmirror.domain.rate_limits import RateLimits
from sparkmirror.engine.session import Session, default_master
from sparkmirror.runtime.flow_run import FlowRun, end_flows
from sparkmirror.runtime.flow_settings import FlowSettings
from sparkmirror.runtime.shared_flows import SharedFlows

_log = logging.getLogger(__name__)

_SLOTS_MIN = 16


class MirrorMaker:
    """`start` returns when Spark runs, `wait` when `stop` was called; `close` ends everything."""

    def __init__(
        self, flows: Sequence[FlowSettings], spark: Mapping[str, str], log_file: Path, *, shared: bool = False
    ) -> None:
        """`shared`: with other processes, which are given the same flows."""
        self._flows = flows
        self._spark = dict(spark)
        self._log_file = log_file
        self._session: Future[Session] = Future()
        self._stopping = threading.Event()
        self._limits: dict[Flow, RateLimits] = {}
        self._shared = SharedFlows(flows, self._run_of) if shared else None
        self._own = {} if shared else {flow.flow: self._run_of(flow) for flow in flows}
        for flow in flows:
            if flow.source is not None and flow.checkpoint is None:
                _log.info("%s emits no checkpoints: %s", flow.flow, flow.checkpoint_off)

    def start(self) -> None:
        """Flows reach out to their clusters while Spark starts. Raises SparkmirrorError when Spark can't."""
        if self._shared is not None:
            self._shared.start()
        for run in self._own.values():
            run.start()
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
        """Raises SparkmirrorError when Spark ended by itself, or a group of nodes refuses this one."""
        session = self._session.result()
        while not self._stopping.wait(1.0):
            if not session.is_alive:
                raise SparkmirrorError(f"Spark's JVM ended unexpectedly; its log is {self._log_file}")
            if self._shared is not None:
                self._shared.look()
            each_second()

    def change_limits(self, limits: Mapping[Flow, RateLimits]) -> None:
        """From now on; flows that are not named are left alone. By the thread that waits."""
        self._limits.update(limits)
        for flow, run in self._runs.items():
            if flow in limits:
                run.change_limits(limits[flow])

    def stop(self) -> None:
        """Make `wait` return. Safe in a signal handler."""
        self._stopping.set()

    def close(self) -> None:
        """Stop every flow in order, then Spark, within about ten seconds."""
        if not self._session.done():
            self._session.set_exception(SparkmirrorError("Spark is not running"))
        if self._shared is not None:
            self._shared.stop()
        end_flows(self._own.values())
        if self._session.exception() is None:
            self._session.result().close()

    def readings(self) -> list[ConnectorReading]:
        """What `/metrics` tells of every connector. Safe in any thread."""
        connectors = [connector for run in self._runs.values() for connector in run.connectors]
        return [reading for connector in connectors if (reading := connector.reading())]

    @property
    def _runs(self) -> Mapping[Flow, FlowRun]:
        return self._own if self._shared is None else self._shared.runs

    def _run_of(self, flow: FlowSettings) -> FlowRun:
        run = FlowRun(flow, self._session, self._slots_for(flow))
        if flow.flow in self._limits:
            run.change_limits(self._limits[flow.flow])
        return run

    def _slots_for(self, flow: FlowSettings) -> Callable[[Session], int]:
        """Its share of Spark's slots: tasks never end by themselves, so no flow may take all of them."""
        return lambda session: slots_share(_tasks_max(flow), self._tasks_max(), session.slots)

    def _tasks_max(self) -> int:
        return sum(map(_tasks_max, self._flows))

    def _wanted_slots(self) -> int:
        # Twice, because a cancelled task holds its slot for seconds while the next one already runs.
        return max(_SLOTS_MIN, 2 * self._tasks_max())


def _tasks_max(flow: FlowSettings) -> int:
    return 0 if flow.source is None else flow.source.settings.tasks_max
