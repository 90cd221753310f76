"""Starts, breaks and stops a cluster of real brokers on this machine.

Brokers end with the process that started them, unless they are to outlive it. The directory's `cluster.json`
lets a later process find them again.
"""

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from sparkmirror.clusters.broker import Broker, BrokerJvm
from sparkmirror.clusters.cluster_state import ClusterSpec, ClusterState
from sparkmirror.clusters.ports import ReservedPort
from sparkmirror.domain.errors import ClusterStartError
from sparkmirror.java.class_archive import ClassArchive
from sparkmirror.java.find_java import find_java
from sparkmirror.java.jars import ensure_jars, kafka_jars

Progress = Callable[[str], None]
_START_TIMEOUT_S = 90.0
_POLL_S = 0.03
_EXCEPTION = re.compile(r"^[\w.$]*(?:Exception|Error): (.+)$", re.MULTILINE)
_START_ATTEMPTS = 3
_ARCHIVE_TIMEOUT_S = 120.0
"""The time for a broker to end when it writes an archive of its classes."""
_ARCHIVED_HEAP_MB = 256


def _silent(_text: str) -> None: ...


class LocalCluster:
    """A handle on brokers, made by `start`, `start_clusters` or `attach`. Broker *i* has node id *i*."""

    def __init__(
        self,
        state: ClusterState,
        directory: Path,
        *,
        outlives_us: bool = False,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.state = state
        self._outlives_us = outlives_us
        self._jvm_options = jvm_options
        self._reserved: list[ReservedPort] = []
        self._saving = threading.Lock()
        self._brokers = tuple(Broker(i, directory, node) for i, node in enumerate(state.nodes))

    @classmethod
    def start(cls, spec: ClusterSpec, directory: Path, on_progress: Progress = _silent) -> "LocalCluster":
        """Start brokers that end with this process, and wait until all respond.

        A cluster that existed in the directory keeps its data, and its addresses if they are free.
        Raises ClusterStartError with its cause, JarsError, NotInstalledError.
        """
        return start_clusters([(spec, directory)], on_progress)[0]

    @classmethod
    def attach(cls, directory: Path) -> "LocalCluster | None":
        """The cluster of this directory, running or not; None if there is none."""
        state = ClusterState.load(directory)
        return None if state is None else cls(state, directory, outlives_us=True)

    @property
    def spec(self) -> ClusterSpec:
        return self.state.spec

    @property
    def brokers(self) -> Sequence[Broker]:
        return self._brokers

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self._brokers)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of running brokers."""
        return tuple(broker.process.pid for broker in self._brokers if broker.process and broker.is_alive())

    def launch(self, on_progress: Progress = _silent) -> None:
        """Start every broker without waiting for it; `await_answers` does that."""
        jvm = self._jvm(on_progress)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._reserve_ports()
        on_progress(f"Starting cluster {self.spec.name}")
        for broker in self._brokers:
            broker.configure(self._brokers, self.spec)
            broker.format(self.state.cluster_id, self.spec)
            broker.launch(jvm, self.state.cluster_id, outlives_us=self._outlives_us)
            self._save()  # after each: a process that is killed here leaves no unknown broker behind

    def await_answers(self, on_progress: Progress = _silent) -> None:
        """Return when every broker responds and sees the others."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                self._await(self._brokers)
                break
            except _PortTakenError:
                self.stop(timeout_s=0)
                if attempt == _START_ATTEMPTS:
                    raise
                self.launch(on_progress)
        on_progress(f"Cluster {self.spec.name} is up at {self.bootstrap_servers}")

    def stop(self, timeout_s: float = 10) -> None:
        """Stop in order; kill brokers that still run after `timeout_s`. Data stays."""
        processes = [broker.process for broker in self._brokers if broker.process]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + timeout_s
        for process in processes:
            process.wait(max(0.0, deadline - time.monotonic()))
        for process in processes:
            process.kill()
        for port in self._reserved:
            port.release()
        self._reserved.clear()

    def kill_broker(self, i: int) -> None:
        """SIGKILL, and wait until it is gone."""
        if process := self._brokers[i].process:
            process.kill()

    def stop_broker(self, i: int, timeout_s: float = 10) -> None:
        """Stop one broker in order: it hands its partitions to others first."""
        if process := self._brokers[i].process:
            process.stop(timeout_s)

    def start_broker(self, i: int) -> None:
        """Start a stopped or killed broker again, with its data, at its address; wait until it responds."""
        broker = self._brokers[i]
        if broker.is_alive():
            return
        broker.launch(self._jvm(_silent), self.state.cluster_id, outlives_us=self._outlives_us)
        self._save()
        self._await([broker])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _jvm(self, on_progress: Progress) -> BrokerJvm:
        java = find_java()
        jars = ensure_jars(kafka_jars(), on_progress=on_progress)
        options = self._jvm_options or broker_classes(jars).options
        return BrokerJvm(java.executable, jars, self.spec.heap_mb, tuple(options))

    def _reserve_ports(self) -> None:
        for broker in self._brokers:
            ports = _reserve(broker.port), _reserve(broker.controller_port)
            self._reserved.extend(ports)
            broker.port, broker.controller_port = (port.number for port in ports)

    def _save(self) -> None:
        with self._saving:  # brokers may be started by several threads
            nodes = tuple(broker.state for broker in self._brokers)
            self.state = replace(self.state, nodes=nodes)
            self.state.save(self.directory)

    def _await(self, started: Sequence[Broker]) -> None:
        """Wait for these, each of which must see every running broker."""
        expected = len(self.pids)
        deadline = time.monotonic() + _START_TIMEOUT_S
        for broker in started:
            while not broker.answers(expected):
                _check(broker, deadline)
                time.sleep(_POLL_S)


def broker_classes(jars: Path) -> ClassArchive:
    """The archive that lets brokers start sooner; it may not exist."""
    return ClassArchive.of("kafka", jars)


def archive_broker_classes(on_progress: Progress = _silent) -> None:
    """Make the archive, unless it exists, with a broker that starts and stops.

    Raises what `LocalCluster.start` raises, and JarsError when Java wrote nothing.
    """

    def run(option: str) -> None:
        with TemporaryDirectory(prefix="sparkmirror-prepare-") as folder:
            state = ClusterState.new(ClusterSpec("prepare", heap_mb=_ARCHIVED_HEAP_MB))
            cluster = LocalCluster(state, Path(folder), jvm_options=[option])
            try:
                cluster.launch(on_progress)
                cluster.await_answers(on_progress)
            finally:
                cluster.stop(_ARCHIVE_TIMEOUT_S)

    broker_classes(ensure_jars(kafka_jars(), on_progress=on_progress)).make(run)


def start_clusters(
    plans: Sequence[tuple[ClusterSpec, Path]], on_progress: Progress = _silent, *, outlives_us: bool = False
) -> list[LocalCluster]:
    """Start several clusters side by side, each in its directory; all of them or none."""
    clusters: list[LocalCluster] = []
    try:
        for spec, directory in plans:
            state = _state_for(spec, directory)
            clusters.append(LocalCluster(state, directory, outlives_us=outlives_us))
            clusters[-1].launch(on_progress)
        for cluster in clusters:
            cluster.await_answers(on_progress)
    except BaseException:
        for cluster in clusters:
            cluster.stop(timeout_s=0)
        raise
    return clusters


class _PortTakenError(ClusterStartError):
    """Another process took a port between our choice and the broker's bind."""


def _state_for(spec: ClusterSpec, directory: Path) -> ClusterState:
    before = LocalCluster.attach(directory)
    if before is None:
        return ClusterState.new(spec)
    if before.pids:
        raise ClusterStartError(f"Cluster {before.spec.name} in {directory} is already running.")
    return before.state.wanted_as(spec)


def _reserve(number: int) -> ReservedPort:
    """Reserve this port if it is still free, else any."""
    with suppress(OSError):
        return ReservedPort(number)
    return ReservedPort()


def _check(broker: Broker, deadline: float) -> None:
    """Raise if the broker has ended or the time is over."""
    if broker.is_alive() and time.monotonic() < deadline:
        return
    log = broker.log_since_launch()
    what = f"did not respond within {_START_TIMEOUT_S:.0f} s" if broker.is_alive() else "ended while starting"
    kind = _PortTakenError if "Address already in use" in log else ClusterStartError
    raise kind(f"The broker at {broker.address} {what}: {cause_in(log)} (its log: {broker.log})")


def cause_in(log: str) -> str:
    """The first exception of a broker's log, which names its cause, or the log's last line."""
    exception = _EXCEPTION.search(log)
    return exception[1] if exception else (log.splitlines() or ["its log is empty"])[-1]
