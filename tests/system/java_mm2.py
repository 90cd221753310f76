"""Runs Java's MirrorMaker 2 in dedicated mode, its connectors on a Connect worker, and single classes of it.

All come from the jars of Kafka's release. JVM options favour a fast start.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import javaproperties
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from sparkmirror.clusters import ensure_jars, find_java, mirror_maker_jars
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.clusters.processes import Process, start_process
from sparkmirror.domain.ids import TopicPartition
from tests.support.mirror import START_TIMEOUT_S
from tests.support.waiting import await_value

STOP_TIMEOUT_S: Final = 30.0
_MIRROR: Final = "org.apache.kafka.connect.mirror"
_FAST_START: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOGGING: Final = files("sparkmirror.clusters") / "log4j2.properties"
_JETTY_MET_CONNECT: Final = "WARN Unable to destroy (org.eclipse.jetty.util.component.ContainerLifeCycle)"
_ASK_TIMEOUT_S: Final = 30.0
_NOT_YET: Final = {404, 409, 500, 503}
"""Status codes while the worker starts and during a rebalance."""
CONNECTORS: Final = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")


def java_command(main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """`options` are further ones of the JVM."""
    known = [*_FAST_START, f"-Dlog4j2.configurationFile={_LOGGING}", "-cp", _class_path()]
    return [find_java().executable, *known, *options, main_class, *arguments]


def _class_path() -> str:
    return f"{ensure_jars(mirror_maker_jars())}/*"


class JavaProcess:
    """A JVM with its log, which ends with this process."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self._process: Process = start_process([command], log, outlives_us=False)

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def log_text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def stop(self) -> None:
        """Stop it in order, so that it stores its last positions.

        A Connect worker and its Jetty both stop the REST server at SIGTERM. Where they meet, Java never ends:
        its tasks run on, and store their positions each `offset.flush.interval.ms`, until it is killed.
        """
        has_ended = self._process.stop(STOP_TIMEOUT_S)
        assert has_ended or _JETTY_MET_CONNECT in self.log_text(), f"had to be killed:\n{self.log_text()}"

    def kill(self) -> None:
        self._process.kill()


@contextmanager
def dedicated(
    properties_file: Path, log: Path, *arguments: str, options: Sequence[str] = ()
) -> Iterator[JavaProcess]:
    """Run the main class of `connect-mirror-maker.sh FILE …`."""
    command = java_command(f"{_MIRROR}.MirrorMaker", str(properties_file), *arguments, options=options)
    java = JavaProcess(command, log)
    try:
        yield java
    finally:
        java.kill()


class ConnectWorker(JavaProcess):
    """The main class of `connect-distributed.sh`."""

    def __init__(self, properties: Mapping[str, str], file: Path, log: Path) -> None:
        self._port = ReservedPort()
        self.url = f"http://{HOST}:{self._port.number}"
        worker_properties = {**properties, "listeners": self.url, "plugin.discovery": "service_load"}
        file.write_text(javaproperties.dumps(worker_properties), encoding="ascii")
        super().__init__(java_command("org.apache.kafka.connect.cli.ConnectDistributed", str(file)), log)

    def kill(self) -> None:
        super().kill()
        self._port.release()

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector or change its configuration."""
        body = json.dumps(dict(config)).encode()
        asked = f"/connectors/{name}/config"
        await_value(lambda: self.ask("PUT", asked, body) is not None, START_TIMEOUT_S, self.log_text)

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return the response's body; None while the worker starts or rebalances."""
        assert self.is_alive(), self.log_text()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_ASK_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in _NOT_YET:
                    raise AssertionError(error.read().decode()) from error
        except urllib.error.URLError:
            pass
        return None


@contextmanager
def connect_worker(folder: Path, properties: Mapping[str, str]) -> Iterator[ConnectWorker]:
    worker = ConnectWorker(properties, folder / "connect.properties", folder / "connect.log")
    try:
        yield worker
    finally:
        worker.kill()


def connector_class(name: str) -> str:
    return f"{_MIRROR}.{name}"


class JavaClasses:
    """Kafka's classes in a JVM, called by py4j."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway = gateway
        self._kafka = gateway.jvm.org.apache.kafka

    def formatted(self, formatter: str, found: Iterable[tuple[bytes, bytes]]) -> list[str]:
        """Format these keys and values with one of MirrorMaker's formatters; returns lines."""
        printer = getattr(self._kafka.connect.mirror.formatters, formatter)()
        printed = self._gateway.jvm.java.io.ByteArrayOutputStream()
        stream = self._gateway.jvm.java.io.PrintStream(printed)
        for key, value in found:
            record = self._kafka.clients.consumer.ConsumerRecord("topic", 0, 0, key, value)
            printer.writeTo(record, stream)
        return str(printed.toString()).splitlines()

    def translated(self, properties: Mapping[str, str], alias: str, group: str) -> dict[TopicPartition, int]:
        """Call RemoteClusterUtils.translateOffsets; metadata is dropped."""
        patience = self._gateway.jvm.java.time.Duration.ofSeconds(int(_ASK_TIMEOUT_S))
        utils = self._kafka.connect.mirror.RemoteClusterUtils
        found = utils.translateOffsets(dict(properties), alias, group, patience)
        return {
            TopicPartition(partition.topic(), partition.partition()): position.offset()
            for partition, position in found.items()
        }

    def consumer(self, settings: Mapping[str, str]) -> Any:
        """A KafkaConsumer."""
        return self._kafka.clients.consumer.KafkaConsumer(dict(settings))

    def partition(self, partition: TopicPartition) -> Any:
        return self._kafka.common.TopicPartition(*partition)

    def milliseconds(self, number: int) -> Any:
        return self._gateway.jvm.java.time.Duration.ofMillis(number)

    @contextmanager
    def sync_store(self, properties: Mapping[str, str]) -> Iterator["JavaSyncStore"]:
        """Make the checkpoint connector's OffsetSyncStore, once it has read its topic to the end."""
        config = self._kafka.connect.mirror.MirrorCheckpointConfig(dict(properties))
        store = JavaSyncStore(self._gateway, config)
        try:
            yield store
        finally:
            store.close()


class JavaSyncStore:
    """Java's OffsetSyncStore."""

    def __init__(self, gateway: JavaGateway, config: Any) -> None:
        # The constructor is package-private.
        types = gateway.new_array(gateway.jvm.java.lang.Class, 1)
        types[0] = config.getClass()
        constructor = gateway.jvm.java.lang.Class.forName(f"{_MIRROR}.OffsetSyncStore")
        constructor = constructor.getDeclaredConstructor(types)
        constructor.setAccessible(True)
        arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
        arguments[0] = config
        self._store = constructor.newInstance(arguments)
        self._partition = gateway.jvm.org.apache.kafka.common.TopicPartition
        self._store.start(False)

    def translate(self, partition: TopicPartition, upstream: int) -> int | None:
        found = self._store.translateDownstream("group", self._partition(*partition), upstream)
        return int(found.getAsLong()) if found.isPresent() else None

    def close(self) -> None:
        self._store.close()


@contextmanager
def java_classes() -> Iterator[JavaClasses]:
    """Start a JVM that ends with the block and with this process."""
    port, token, process = launch_gateway(
        classpath=_class_path(),
        javaopts=[*_FAST_START, f"-Dlog4j2.configurationFile={_LOGGING}"],
        java_path=find_java().executable,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    try:
        yield JavaClasses(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(STOP_TIMEOUT_S)
