"""Sets up the target of faults: two clusters of three brokers, proxies, and a mirror on Spark executors."""

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import confluent_kafka as confluent
import javaproperties
import psutil
import pyspark
from confluent_kafka.admin import AdminClient, NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from tests.faults.numbered import CONFIGS, FRAIL, FRAIL_REPLICAS, NUMBERED, NUMBERED_PARTITIONS
from tests.faults.numbered_verdict import Election
from tests.faults.side import BROKERS, SETTINGS, Side
from tests.faults.spark_processes import SparkProcesses
from tests.support.broker_data import admin, append, delete_records, numbered
from tests.support.cluster_pairs import cluster_pair_of
from tests.support.mirror import Mirror
from tests.support.proxy import proxied
from tests.support.topic_reader import await_leaders
from tests.support.waiting import await_value

T = TypeVar("T")

ALIAS: Final = "here"
TOPIC: Final = "faults.orders"
EXTRA_TOPIC: Final = "faults.extra"
"""Created and deleted to change the set of mirrored partitions. It stays empty."""
PARTITIONS: Final = 6
_BEGINNING: Final = 50_000
"""The log start of the first partition with preserved offsets."""
PINGS: Final = "faults.pings"
"""All its records are the same, so that no content tells one from another; they are counted."""
PINGS_PARTITIONS: Final = 2
TASKS: Final = 2
EXECUTORS: Final = 2
REQUEST_TIMEOUT_S: Final = 4.0
"""Kafka's 30 s would prolong every fault that keeps a broker from responding."""
NETWORK_TIMEOUT_S: Final = 10.0
"""The time without heartbeats after which Spark declares an executor lost, set by `spark/session.py`."""

_FLOW: Final = f"{ALIAS}->there."
_CLIENTS: Final = (
    *(f"{_FLOW}{client}." for client in ("consumer", "producer", "producer.override", "admin")),
    "there.",  # the worker's own, which reads and writes positions and progress
)
_PYTHON_PATH: Final = [path for path in (os.environ.get("PYTHONPATH"),) if path]
_CLOCK_FOLDER: Final = Path(__file__).with_name("wall_clock")
PYTHON_PATH: Final = os.pathsep.join([str(Path(__file__).with_name("functions")), *_PYTHON_PATH])
"""The path on which Python finds the flow's function."""
_WAIT_S: Final = 400.0
_RESPONSE_TIMEOUT_S: Final = 70.0
"""Longer than librdkafka waits for brokers."""
_STARTED: Final = "started in"
_COPIES: Final = " copies "
_STANDS_BY: Final = "stands by: "
_PAGES: Final = re.compile(r"pages are at (http://\S+)/ui/")


def remote(topic: str) -> str:
    return f"{ALIAS}.{topic}"


def properties(source: str, target: str) -> dict[str, str]:
    timeout_ms = str(int(REQUEST_TIMEOUT_S * 1000))
    return {
        "clusters": f"{ALIAS}, there",
        f"{ALIAS}.bootstrap.servers": source,
        "there.bootstrap.servers": target,
        f"{_FLOW}enabled": "true",
        f"{_FLOW}topics": r"faults\..*",
        "tasks.max": str(TASKS),
        "refresh.topics.interval.seconds": "1",
        "emit.heartbeats.enabled": "false",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "5",
        "replication.factor": str(BROKERS),
        "offset-syncs.topic.replication.factor": str(BROKERS),
        "offset.storage.replication.factor": str(BROKERS),
        **{f"{client}request.timeout.ms": timeout_ms for client in _CLIENTS},
    }


PRESERVING: Final = {
    f"{_FLOW}offsets.preserve": "true",
    f"{ALIAS}.consumer.isolation.level": "read_committed",
}
"""Added where every record must have the offset of its source."""

TRANSFORMING: Final = {
    f"{_FLOW}transforms": "thin, unmarked, via",
    f"{_FLOW}transforms.thin.type": "sparkmirror.transforms.Function",
    f"{_FLOW}transforms.thin.function": "orders:thinned",
    f"{_FLOW}transforms.thin.predicate": "orders",
    f"{_FLOW}transforms.unmarked.type": "Filter",
    f"{_FLOW}transforms.unmarked.predicate": "marked",
    f"{_FLOW}transforms.via.type": "InsertHeader",
    f"{_FLOW}transforms.via.header": "via",
    f"{_FLOW}transforms.via.value.literal": "soak",
    f"{_FLOW}transforms.via.predicate": "orders",
    f"{_FLOW}predicates": "orders, marked",
    f"{_FLOW}predicates.orders.type": "TopicNameMatches",
    f"{_FLOW}predicates.orders.pattern": remote(TOPIC).replace(".", r"\."),
    f"{_FLOW}predicates.marked.type": "HasHeaderKey",
    f"{_FLOW}predicates.marked.name": "drop",
}
"""Added where a function and a filter leave records of TOPIC out."""

LOCAL_CLUSTER: Final = {
    # Twice the slots that are needed: a cancelled task keeps its own for seconds.
    "spark.master": f"local-cluster[{EXECUTORS},{TASKS},512]",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-Xms64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Executors to kill: JVMs of their own."""


class DrillTestbed:
    """Both sides and the mirror between them. Made by `open_testbed`."""

    def __init__(
        self, source: Side, target: Side, folder: Path, *, preserves: bool = False, transforms: bool = False
    ) -> None:
        self.source = source
        self.target = target
        self.folder = folder
        self.expired = 0
        """At most so many offsets can't be compared, as they expired on either side."""
        self.pings = dict.fromkeys(range(PINGS_PARTITIONS), (0, 0))
        """By partition of `PINGS`: the offsets on both sides of a record that counting begins with."""
        self.preserves = preserves
        """Whether records have their offsets on both sides."""
        self.transforms = transforms
        """Whether a function and a filter leave records out."""
        self.has_numbered = False
        """Whether the topics of `numbered` are mirrored too."""
        self.were_delayed = False
        """Whether a fault may have delayed a request until its sender had a successor."""
        self.elections: list[Election] = []
        """The unclean ones, in their order."""
        self._wall_clock = folder / "wall-clock"
        self.mirror = self._new_mirror()
        self.properties_for_all = folder / "direct.properties"
        """The configuration of the same mirror without the proxies."""
        direct = self._properties(source.cluster.bootstrap_servers, target.cluster.bootstrap_servers)
        self.properties_for_all.write_text(javaproperties.dumps(direct), encoding="ascii")
        self._spark_home = _spark_home(folder / "spark")
        self._log_before_start = 0
        self._has_extra_topic = False
        self._some_topics = 0

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.source, self.target

    def _properties(self, source: str, target: str) -> dict[str, str]:
        return {
            **properties(source, target),
            **(PRESERVING if self.preserves else {}),
            **(TRANSFORMING if self.transforms else {}),
        }

    def _new_mirror(self) -> Mirror:
        through = self._properties(self.source.bootstrap_servers, self.target.bootstrap_servers)
        folder = self.folder / f"mirror-{len(list(self.folder.glob('mirror-*')))}"
        mirror = Mirror(folder, {**through, **LOCAL_CLUSTER}, "--http", f"{HOST}:0")
        mirror.environment = {
            "PYTHONPATH": os.pathsep.join([str(_CLOCK_FOLDER), PYTHON_PATH]),
            "SPARKMIRROR_TEST_CLOCK": str(self._wall_clock),
        }
        return mirror

    def move_wall_clock(self, seconds: float) -> None:
        """Move the wall clock of the mirror's Python processes by these seconds."""
        draft = self._wall_clock.with_suffix(".draft")
        draft.write_text(f"{seconds}", encoding="ascii")
        draft.replace(self._wall_clock)

    def start_beside(self) -> Mirror:
        """Start a second driver with the same configuration, from now on the mirror. Returns the first.

        It stands by until that is gone.
        """
        first, self.mirror = self.mirror, self._new_mirror()
        self.start_mirror()
        return first

    def await_standby(self) -> None:
        self.await_while_running(lambda: _STANDS_BY in self._log_since_start())

    def start_mirror(self) -> None:
        """Start it, also again after it has ended. Returns at once."""
        before = os.environ.get("SPARK_HOME")
        self._log_before_start = len(self.mirror.log_text())
        os.environ["SPARK_HOME"] = str(self._spark_home)
        try:
            self.mirror.start()
        finally:
            os.environ.pop("SPARK_HOME")
            if before is not None:
                os.environ["SPARK_HOME"] = before

    def await_copying(self) -> None:
        """Until the driver that was started last has submitted a copy job, and its tasks have workers."""
        self.await_while_running(lambda: all(text in self._log_since_start() for text in (_STARTED, _COPIES)))
        self.workers()

    def workers(self) -> SparkProcesses:
        """Return all workers, once every task has one."""

        def complete() -> SparkProcesses | None:
            found = SparkProcesses.of(self.mirror)
            return found if len(found.workers) >= TASKS and found.executors else None

        return self.await_while_running(complete)

    def pages_url(self) -> str | None:
        """The URL of the driver that was started last; None before it serves pages."""
        found = _PAGES.findall(self._log_since_start())
        return found[-1] if found else None

    def copy_jobs(self) -> int:
        return self.mirror.log_text().count(_COPIES)

    def await_copy_job(self, before: int) -> None:
        """Until there have been more of them than `before`."""
        self.await_while_running(lambda: self.copy_jobs() > before)

    def change_mirrored_topics(self) -> None:
        """Make the driver end its copy job and submit the next one."""
        before = self.copy_jobs()
        cluster = self.source.cluster
        delete(cluster, EXTRA_TOPIC) if self._has_extra_topic else create(cluster, EXTRA_TOPIC, 1)
        self._has_extra_topic = not self._has_extra_topic
        self.await_copy_job(before)

    def create_some_topics(self, count: int) -> list[str]:
        """Create topics of the source, to be mirrored. They stay empty. Returns their names."""
        names = [f"{EXTRA_TOPIC}.{self._some_topics + at}" for at in range(count)]
        self._some_topics += count
        for name in names:
            create(self.source.cluster, name, 1)
        return names

    def kill_driver(self) -> None:
        """Kill it and restart it at once, as a supervisor does."""
        self.mirror.send(signal.SIGKILL)
        self.mirror.wait(_WAIT_S)
        self.start_mirror()

    def kill_driver_jvm(self) -> None:
        """Kill the driver's JVM, which ends the driver, and restart it."""
        executors = SparkProcesses.of(self.mirror).executors
        for jvm in self.mirror.jvms():
            if jvm not in executors:
                jvm.kill()
        assert self.mirror.wait(_WAIT_S) == 2, self._log_tail()
        self.start_mirror()

    def kill_everything(self) -> None:
        """Kill it and all its descendants; it is not started again."""
        for process in self.mirror.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.mirror.wait(_WAIT_S)

    def restart_mirror(self) -> None:
        """Stop it in order and start it."""
        self.stop_mirror()
        self.start_mirror()

    def stop_mirror(self) -> None:
        """Stop it in order; it may take long where brokers and Spark share two cores."""
        self.mirror.send(signal.SIGTERM)
        assert self.mirror.wait(_WAIT_S) == 0, self._log_tail()
        self.mirror.assert_nothing_left(within_s=_WAIT_S)

    def close(self) -> None:
        self.mirror.close()

    def restore(self) -> None:
        """End all faults of the network."""
        for side in self.sides:
            for proxy in side.proxies:
                proxy.restore()

    def await_while_running(self, probe: Callable[[], T | None], describe: Callable[[], str] = str) -> T:
        """The probe's result; fails as soon as the mirror has ended. `describe` explains a failure."""

        def checked() -> T | None:
            assert self.mirror._running.is_alive(), f"the mirror has ended:\n{self._log_tail()}"
            return probe()

        return await_value(
            checked, _WAIT_S, lambda: f"{describe()}\n{SparkProcesses.of(self.mirror)}\n{self._log_tail()}"
        )

    def _log_since_start(self) -> str:
        return self.mirror.log_text()[self._log_before_start :]

    def _log_tail(self) -> str:
        return self.mirror.log_text()[-4000:]


@contextmanager
def open_testbed(
    source: LocalCluster,
    target: LocalCluster,
    folder: Path,
    *,
    with_numbered: bool = False,
    preserves: bool = False,
    transforms: bool = False,
) -> Iterator[DrillTestbed]:
    """Start the mirror behind proxies; it may not copy yet when the block begins."""
    with ExitStack() as stack:
        proxies = [
            stack.enter_context(proxied(*((HOST, broker.port) for broker in cluster.brokers)))
            for cluster in (source, target)
        ]
        mirrored = {TOPIC: PARTITIONS, PINGS: PINGS_PARTITIONS}
        for topic, partitions in mirrored.items():
            create(source, topic, partitions)
        await_leaders(source.bootstrap_servers, mirrored)
        if with_numbered:
            create_numbered(source, target)
        if preserves:
            append(source, TOPIC, numbered(_BEGINNING + 10))
            delete_records(source, TOPIC, _BEGINNING)
        testbed = DrillTestbed(
            Side("source", source, proxies[0], TOPIC, PARTITIONS),
            Side("target", target, proxies[1], remote(TOPIC), PARTITIONS),
            folder,
            preserves=preserves,
            transforms=transforms,
        )
        testbed.has_numbered = with_numbered
        stack.callback(testbed.close)
        testbed.start_mirror()
        yield testbed


def clusters(home: Path) -> AbstractContextManager[tuple[LocalCluster, LocalCluster]]:
    return cluster_pair_of(BROKERS, SETTINGS, home)


def create_numbered(source: LocalCluster, target: LocalCluster) -> None:
    """Create topics on both sides, before a mirror starts: it would give all of them three replicas."""
    for cluster, names in ((source, str), (target, remote)):
        for topic in NUMBERED:
            replicas = FRAIL_REPLICAS if topic == FRAIL else (tuple(range(BROKERS)),) * NUMBERED_PARTITIONS
            assigned = [list(of_partition) for of_partition in replicas]
            new = NewTopic(names(topic), len(assigned), replica_assignment=assigned, config=CONFIGS[topic])
            create_topic(cluster, new)
        await_leaders(cluster.bootstrap_servers, {names(topic): NUMBERED_PARTITIONS for topic in NUMBERED})


def create(cluster: LocalCluster, topic: str, partitions: int) -> None:
    create_topic(cluster, NewTopic(topic, partitions, BROKERS))


def create_topic(cluster: LocalCluster, new_topic: NewTopic) -> None:
    exists = confluent.KafkaError.TOPIC_ALREADY_EXISTS
    _await_done(cluster, lambda client: client.create_topics([new_topic]), exists)


def delete(cluster: LocalCluster, topic: str) -> None:
    is_gone = confluent.KafkaError.UNKNOWN_TOPIC_OR_PART
    _await_done(cluster, lambda client: client.delete_topics([topic]), is_gone)


def _await_done(
    cluster: LocalCluster, ask: Callable[[AdminClient], Mapping[str, Future[None]]], done_before: int
) -> None:
    """Retry while required brokers are gone. The error `done_before` shows that only a response was lost."""
    client = admin(cluster)
    refusals: list[str] = []

    def done() -> bool:
        try:
            for asked in ask(client).values():
                asked.result(_RESPONSE_TIMEOUT_S)
        except confluent.KafkaException as refusal:
            refusals[:] = [str(refusal)]
            return bool(refusal.args[0].code() == done_before)
        return True

    await_value(done, _WAIT_S, lambda: f"{refusals}")


def _spark_home(folder: Path) -> Path:
    """Link PySpark's Spark home, because `local-cluster` writes its executors' logs into that folder."""
    folder.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (folder / entry.name).symlink_to(entry)
    return folder
