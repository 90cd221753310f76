"""The test bed: two clusters of one broker each, and what a run needs of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.process_tree import read_stat
from bench.sides import Mirroring
from bench.tls_ports import BrokerKeys
from bench.topics import Topics
from bench.workloads import DATA_PREFIX
from sparkmirror.clusters import (
    ClusterSpec,
    LocalCluster,
    ensure_jars,
    find_java,
    mirror_maker_jars,
    start_clusters,
)

BROKER_HEAP_MB = 1024
BROKER_SETTINGS = {
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "100",
}


@dataclass(frozen=True, slots=True)
class Broker:
    """A running cluster of one broker."""

    topics: Topics
    pid: int
    data: Path
    """The folder that holds its logs."""
    tls_address: str

    @property
    def bootstrap(self) -> str:
        return self.topics.bootstrap

    def cpu_s(self) -> float:
        stat = read_stat(self.pid)
        return stat.cpu_s if stat else 0.0


@dataclass(frozen=True, slots=True)
class Bed:
    """Both clusters, a folder for files and logs, and what Java MM2 is started with."""

    source: Broker
    target: Broker
    folder: Path
    java: str
    mm2_jars: Path
    tasks_max: int
    over_tls: Mapping[str, str]
    """The settings of a client of the brokers' TLS ports."""

    def mirroring(
        self, alias: str, topics: str, tasks_max: int | None = None, *, tls: bool = False
    ) -> Mirroring:
        tasks = tasks_max or self.tasks_max
        source, target = self.source, self.target
        if tls:
            return Mirroring(alias, source.tls_address, target.tls_address, topics, tasks, self.over_tls)
        return Mirroring(alias, source.bootstrap, target.bootstrap, topics, tasks)

    def clean(self) -> None:
        """Delete what a run left on both clusters, but not the workload's data."""
        data = [name for name in self.source.topics.names() if name.startswith(DATA_PREFIX)]
        self.source.topics.delete_all_but(data)
        self.target.topics.delete_all_but(())

    def drop_data(self) -> None:
        self.source.topics.delete_all_but(())


@contextmanager
def opened(folder: Path, tasks_max: int, say: Callable[[str], None]) -> Iterator[Bed]:
    """Both clusters, started for the block and ended after it, however it ends."""
    java = find_java().executable
    jars = ensure_jars(mirror_maker_jars(), on_progress=say)
    keys = BrokerKeys.made(java, folder)
    plans = {name: keys.prepare(_spec(name), folder / name) for name in ("source", "target")}
    clusters = start_clusters([(spec, folder / name) for name, (spec, _) in plans.items()], say)
    with ExitStack() as stack:
        source, target = (
            _broker(stack.enter_context(cluster), address)
            for cluster, (_, address) in zip(clusters, plans.values(), strict=True)
        )
        yield Bed(source, target, folder, java, jars, tasks_max, keys.client_settings)


def _spec(name: str) -> ClusterSpec:
    return ClusterSpec(name, settings=BROKER_SETTINGS, heap_mb=BROKER_HEAP_MB)


def _broker(cluster: LocalCluster, tls_address: str) -> Broker:
    return Broker(Topics(cluster.bootstrap_servers), cluster.pids[0], cluster.directory, tls_address)
