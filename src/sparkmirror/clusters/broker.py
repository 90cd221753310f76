"""Configures and runs one KRaft node, and checks whether it responds.

Controller and broker share a process, as in Kafka's quick start. Data and log survive a stop.
"""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from sparkmirror.clusters.cluster_state import ClusterSpec, NodeState
from sparkmirror.clusters.ports import HOST
from sparkmirror.clusters.processes import Process, start_process
from sparkmirror.clusters.storage import format_storage, is_formatted, needs_tool

# Kafka's own start scripts use G1 with these flags, so benchmarks use the broker of production.
_LARGE_HEAP_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)
# A small heap means a test: start fast, take no second core.
_SMALL_HEAP_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_SMALL_HEAP_MB = 256
# Each of Kafka's threads polls for work several times a second; brokers of tests are often idle.
_SMALL_HEAP_SETTINGS = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "group.coordinator.threads": "1",
    "share.coordinator.threads": "1",
}
_METADATA_V1_ALL_BROKERS_NO_TOPICS = struct.pack(">ihhihi", 14, 3, 1, 0, -1, 0)


@dataclass(frozen=True, slots=True)
class BrokerJvm:
    """The JVM options of every broker of a cluster."""

    java: str
    jars: Path
    heap_mb: int
    options: tuple[str, ...] = ()

    def command(self, main_class: str, *arguments: str) -> list[str]:
        heap = [f"-Xms{self.heap_mb // 2}m", f"-Xmx{self.heap_mb}m"]
        flags = _SMALL_HEAP_JVM if self.heap_mb <= _SMALL_HEAP_MB else _LARGE_HEAP_JVM
        logging = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
        base = [self.java, *heap, *flags, *self.options, "-Djava.awt.headless=true", logging]
        return [*base, "-cp", f"{self.jars}/*", main_class, *arguments]


class Broker:
    """A node in a cluster's directory: `broker-N.properties`, `broker-N.log` and the data in `broker-N`."""

    def __init__(self, node_id: int, directory: Path, node: NodeState) -> None:
        self.node_id = node_id
        self.port = node.broker_port
        self.controller_port = node.controller_port
        self.process = Process(node.process) if node.process else None
        self.data = directory / f"broker-{node_id}"
        self.log = directory / f"broker-{node_id}.log"
        self.properties_file = directory / f"broker-{node_id}.properties"
        self._log_start = 0

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def state(self) -> NodeState:
        return NodeState(self.port, self.controller_port, self.process.identity if self.process else None)

    def configure(self, quorum: Sequence["Broker"], spec: ClusterSpec) -> None:
        """Write server.properties for a node of this quorum."""
        text = javaproperties.dumps(server_properties(self, quorum, spec), timestamp=False)
        self.properties_file.write_text(text, encoding="ascii")

    def format(self, cluster_id: str, spec: ClusterSpec) -> None:
        """Format a new node's storage, unless that needs Kafka's tool: then `launch` runs it."""
        if not (is_formatted(self.data) or needs_tool(spec.settings)):
            format_storage(self.data, cluster_id, self.node_id)

    def launch(self, jvm: BrokerJvm, cluster_id: str, *, outlives_us: bool) -> None:
        """Start the JVM, after Kafka's tool for the storage if it isn't formatted. Returns at once."""
        properties = str(self.properties_file)
        steps = [jvm.command("kafka.Kafka", properties)]
        if not is_formatted(self.data):
            tool = jvm.command("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", properties)
            steps.insert(0, tool)
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self.process = start_process(steps, self.log, outlives_us=outlives_us)

    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def answers(self, cluster_size: int) -> bool:
        """Whether it serves requests and sees every broker of its cluster."""
        try:
            return _brokers_seen(self.port) >= cluster_size
        except OSError:
            return False

    def log_since_launch(self) -> str:
        try:
            with self.log.open("rb") as stream:
                stream.seek(self._log_start)
                return stream.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def data_bytes(self) -> int:
        """Disk usage of the data; Kafka's index files are sparse."""
        return sum(_disk_bytes(file) for file in self.data.rglob("*"))


def server_properties(node: Broker, quorum: Sequence[Broker], spec: ClusterSpec) -> dict[str, str]:
    """The node's place in its cluster, defaults for a small machine, and over them the spec's settings."""
    voters = ",".join(f"{other.node_id}@{HOST}:{other.controller_port}" for other in quorum)
    copies = str(len(quorum))
    in_sync = str(min(len(quorum), 2))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "log.dirs": str(node.data),
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "5",
        # Taken from the heap at start, all of it; Kafka's default would fill a small one.
        "log.cleaner.dedupe.buffer.size": str(min(spec.heap_mb // 8, 128) << 20),
        "group.initial.rebalance.delay.ms": "0",
        # An idle controller would write a record twice a second, a quarter of what an idle broker costs.
        "metadata.max.idle.interval.ms": "5000",
        # The controller refuses a restarted broker until the session of its earlier process has expired.
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "4000",
        **(_SMALL_HEAP_SETTINGS if spec.heap_mb <= _SMALL_HEAP_MB else {}),
        **spec.settings,
    }


def _brokers_seen(port: int) -> int:
    """The count of live brokers that the one at `port` knows, by a Metadata v1 request."""
    with socket.create_connection((HOST, port), timeout=2) as connection:
        connection.sendall(_METADATA_V1_ALL_BROKERS_NO_TOPICS)
        response = connection.recv(12, socket.MSG_WAITALL)
    if len(response) < 12:
        return 0
    _size, _correlation_id, brokers = struct.unpack(">iii", response)
    return int(brokers)


def _disk_bytes(file: Path) -> int:
    try:
        return file.lstat().st_blocks * 512
    except OSError:
        return 0  # deleted by the broker meanwhile
