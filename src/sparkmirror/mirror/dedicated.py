"""Runs dedicated mode: several flows in one Spark session, stopped in order."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from sparkmirror.domain.assignment import slots_share
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.readings import ConnectorReading, NodeReading
from sparkmirror.mirror.elected_flows import ElectedFlows
from sparkmirror.mirror.flow_runs import FlowRun, end_flows
from sparkmirror.mirror.shared_targets import SharedTargets
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.settings.changed_file import ChangedFile
from sparkmirror.settings.configured import ConfiguredFlow
from sparkmirror.spark.session import Session
from sparkmirror.spark.spark_on_demand import SparkOnDemand

_log = logging.getLogger(__name__)

_SLOTS_MIN = 16
_START_POLL_S = 0.1


class MirrorMaker:
    """`start` returns when Spark runs, `wait` when `stop` was called; `close` ends everything."""

    def __init__(
        self,
        flows: Sequence[ConfiguredFlow],
        spark: SparkOnDemand,
        *,
        shared: bool = False,
        file: ChangedFile | None = None,
        accepted: Collection[Alias] = (),
    ) -> None:
        """`shared`: processes with the same file share the flows; else all but one stand by.

        Rate limits that change in `file` take effect while it runs. `accepted` are the clusters that an
        operator has accepted, whatever they were before.
        """
        self._accepted = accepted
        self._flows = flows
        self._spark = spark
        self._stopping = threading.Event()
        self._shared = SharedTargets()
        self._file = file
        self._limits: dict[Flow, RateLimits] = {}
        self._elected = ElectedFlows(flows, self._run_of, shared=shared)
        self._is_shared = shared
        self._is_started = False
        for flow in flows:
            if flow.source is not None and flow.checkpoint is None:
                _log.info("%s emits no checkpoints: %s", flow.flow, flow.checkpoint_off)

    def start(self, each_turn: Callable[[], None] = lambda: None) -> None:
        """Flows connect to their clusters while Spark starts. Raises SparkmirrorError when Spark can't.

        `each_turn` is called until then. A process that stands by for all flows has Spark ready where that
        holds no executors of a cluster.
        """
        if self._stopping.is_set():
            return
        if any(flow.worker.standby_session for flow in self._flows):
            self._spark.session()
        self._elected.start()
        while not self._is_ready() and not self._stopping.wait(_START_POLL_S):
            each_turn()
        self._is_started = not self._stopping.is_set()

    def _is_ready(self) -> bool:
        self._check()
        return not self._spark.is_starting and not self._elected.joining

    def _check(self) -> None:
        if self._spark.failure is not None:
            raise self._spark.failure
        self._elected.check()

    def wait(self, each_second: Callable[[], None] = lambda: None) -> None:
        """Raises SparkmirrorError when Spark ended by itself, a topic is unfit, or another mirror runs."""
        while not self._stopping.wait(1.0):
            self._check()
            self._begin_again()
            self._follow_file()
            each_second()

    def _begin_again(self) -> None:
        """Restart flows of which a cluster was replaced, where `on.cluster.change` is continue."""
        asking = [run for run in self._runs.values() if run.continues_with_another]
        changed = {alias for run in asking for alias in run.changed}
        again = [flow for flow in self._runs if changed & set(flow)]
        if not again:
            return
        runs = [self._runs[flow] for flow in again]
        _log.warning(
            "another cluster answers for %s: %s begins again",
            *(", ".join(map(str, sorted(each))) for each in (changed, again)),
        )
        end_flows(runs)
        for run in runs:
            run.release()
        self._elected.begin_again(again)

    def _follow_file(self) -> None:
        limits = {} if self._file is None else self._file.poll()
        self._limits.update(limits)
        for flow, run in self._runs.items():
            if flow in limits:
                run.change_limits(limits[flow])

    def stop(self) -> None:
        """Make `wait` return. Safe in a signal handler."""
        self._stopping.set()

    def close(self) -> None:
        """Stop every flow in order, then Spark, within about ten seconds."""
        self._spark.cancel_start()
        self._elected.stop()
        self._spark.close()

    def readings(self) -> list[ConnectorReading]:
        """The metrics of every connector. Safe in any thread."""
        connectors = [connector for run in self._runs.values() for connector in run.connectors]
        return [reading for connector in connectors if (reading := connector.reading())]

    def up(self) -> Mapping[Alias, bool]:
        """Whether each cluster of the flows that run here, or may yet, answers. Safe in any thread."""
        found = {flow.flow.target: False for flow in self._elected.undecided if flow.source is not None}
        for run in self._runs.values():
            for alias, is_up in run.up.items():
                found[alias] = found.get(alias, True) and bool(is_up)
        return found

    def node_reading(self) -> NodeReading | None:
        """Return this process for its metrics; None where several share the flows, each in its group."""
        if self._is_shared:
            return None
        return NodeReading("mirror-maker", None, None, is_rebalancing=False, jvm=self._spark.jvm())

    def looks(self) -> list[ConnectorLook]:
        """Return what every connector knows. Thread-safe."""
        looks = [look for run in self._runs.values() for look in run.looks()]
        return [*looks, *self._elected.looks()]

    def show_page(self, url: str) -> None:
        """Name the page that shows this mirror in Spark's descriptions of jobs. Called before `start`."""
        self._spark.page = url

    @property
    def is_started(self) -> bool:
        """Whether Spark runs. Safe in any thread."""
        return self._is_started

    @property
    def _runs(self) -> Mapping[Flow, FlowRun]:
        return self._elected.runs

    def _run_of(self, flow: ConfiguredFlow) -> FlowRun:
        slots_of = self._slots_for(flow)
        source, target = flow.flow
        opposite = next((other for other in self._flows if other.flow == Flow(target, source)), None)
        run = FlowRun(flow, self._spark.session(), slots_of, self._accepted, self._shared, opposite)
        if flow.flow in self._limits:
            run.change_limits(self._limits[flow.flow])
        return run

    def _slots_for(self, flow: ConfiguredFlow) -> Callable[[Session], int]:
        """The flow's share of Spark's slots: tasks never end by themselves, so none may take all."""
        return lambda session: slots_share(_tasks_max(flow), self._tasks_max(), session.slots)

    def _tasks_max(self) -> int:
        return sum(map(_tasks_max, self._flows))


def own_spark(flows: Sequence[ConfiguredFlow], settings: Mapping[str, str], log_file: Path) -> SparkOnDemand:
    """A Spark of these flows' own; `settings` are the user's `spark.*` properties."""
    tasks_max = sum(map(_tasks_max, flows))
    if settings.get("spark.master", "").startswith("spark://"):
        # By default a standalone cluster gives all of its cores to its first application.
        settings = {"spark.cores.max": str(max(1, tasks_max)), **settings}
    # Twice, because a cancelled task holds its slot for seconds while the next one already runs.
    return SparkOnDemand.own(settings, max(_SLOTS_MIN, 2 * tasks_max), log_file)


def _tasks_max(flow: ConfiguredFlow) -> int:
    return 0 if flow.source is None else flow.source.settings.tasks_max
