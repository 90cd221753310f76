"""Runs one broker of an older Kafka, with jars from Maven Central, for as long as a block lasts.

Before 3.3 there is a ZooKeeper beside it, of the version that Kafka depends on.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import confluent_kafka as confluent
import javaproperties
import pytest
from confluent_kafka.admin import AdminClient

from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.clusters.processes import start_process
from sparkmirror.java.find_java import find_java
from sparkmirror.java.folders import cache_folder, locked
from sparkmirror.java.ivy import Ivy, Module
from tests.support.secured_broker import LOGIN_PASSWORD, USER, quoted
from tests.support.waiting import await_value

NEEDS_JARS: Final = pytest.mark.skipif(
    "OLD_BROKERS" not in os.environ,
    reason="not run: needs OLD_BROKERS=1, which fetches 60 MB for each release",
)
START_TIMEOUT_S: Final = 90.0
_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_CLUSTER_ID: Final = "b2xkLWJyb2tlcnMtMDAwMA"
_LOGGING: Final = """
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""
_LOGGER: Final = Module("org.slf4j", "slf4j-reload4j", "1.7.36")
_ONE_REPLICA: Final = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Release:
    version: str
    scala: str = "2.13"
    has_quorum: bool = False
    others: tuple[Module, ...] = (_LOGGER,)

    @property
    def modules(self) -> tuple[Module, ...]:
        return Module("org.apache.kafka", f"kafka_{self.scala}", self.version), *self.others

    @property
    def authorizer(self) -> str:
        if self.has_quorum:
            return "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        return f"kafka.security.{'auth.Simple' if self.version < '2.4' else 'authorizer.'}AclAuthorizer"


RELEASES: Final = (
    # Its own ZooKeeper knows no Java as new as ours (ZOOKEEPER-3779); this one brings a logger.
    Release("2.2.2", "2.12", others=(Module("org.apache.zookeeper", "zookeeper", "3.5.9"),)),
    Release("2.8.2"),
    Release("3.0.2"),
    Release("3.3.2", has_quorum=True),
)
"""2.2 is the last without IncrementalAlterConfigs, 2.8 the first with topic ids, 3.3 the first with KRaft."""


class _Listening(NamedTuple):
    port: int


@dataclass(frozen=True, slots=True)
class OldCluster:
    release: Release
    bootstrap_servers: str
    log: Path
    login_port: int
    """Before KRaft: where a user logs in by PLAIN, and may do what ACLs allow."""

    @property
    def brokers(self) -> Sequence[_Listening]:
        return [_Listening(int(self.bootstrap_servers.rpartition(":")[2]))]


@contextmanager
def old_cluster(release: Release, folder: Path) -> Iterator[OldCluster]:
    """Responds when it is yielded; its authorizer allows clients without a login everything."""
    folder.mkdir()
    (folder / "log4j.properties").write_text(_LOGGING, encoding="ascii")
    with ExitStack() as stack:
        ports = [ReservedPort() for _ in range(3)]
        for port in ports:
            stack.callback(port.release)
        broker, other, login = (port.number for port in ports)
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{broker}",
            "log.dirs": str(folder / "data"),
            "authorizer.class.name": release.authorizer,
            "super.users": "User:ANONYMOUS",
            **_ONE_REPLICA,
        }
        if release.has_quorum:
            settings |= _quorum(broker, other)
        else:
            settings |= {
                "broker.id": "0",
                "zookeeper.connect": f"{HOST}:{other}",
                **_listeners(broker, login),
            }
            keeper = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            kept = {"dataDir": str(folder / "keeper"), "clientPort": str(other), "clientPortAddress": HOST}
            _write(folder / "zookeeper.properties", {**kept, "admin.enableServer": "false"})
            command = [*java(release, folder), keeper, str(folder / "zookeeper.properties")]
            stack.callback(start_process([command], folder / "zookeeper.log", outlives_us=False).kill)
        _write(folder / "server.properties", settings)
        log = folder / "server.log"
        steps = _steps(release, folder)
        process = start_process(steps, log, outlives_us=False)
        stack.callback(process.kill)
        cluster = OldCluster(release, f"{HOST}:{broker}", log, login)

        def answers() -> bool:
            assert process.is_alive(), log.read_text()
            return _answers(cluster)

        await_value(answers, START_TIMEOUT_S, log.read_text)
        yield cluster


def java(release: Release, folder: Path) -> Sequence[str]:
    logging = f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"
    return [find_java().executable, *_JVM, logging, "-cp", f"{_jars(release)}/*"]


def _steps(release: Release, folder: Path) -> list[list[str]]:
    properties = str(folder / "server.properties")
    run = [*java(release, folder), "kafka.Kafka", properties]
    tool = [*java(release, folder), "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", properties]
    return [tool, run] if release.has_quorum else [run]


def _listeners(broker: int, login: int) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "listeners": f"PLAINTEXT://{HOST}:{broker},LOGIN://{HOST}:{login}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": (
            f"{module} required user_{USER}={quoted(LOGIN_PASSWORD)};"
        ),
    }


def _quorum(broker: int, controller: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "0",
        "controller.quorum.voters": f"0@{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{broker},CONTROLLER://{HOST}:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


def _jars(release: Release) -> Path:
    """Fetched once; Ivy checks them against Maven Central's sums."""
    home = cache_folder() / "jars"
    folder = home / f"old-kafka-{release.version}"
    with locked(home / f"{folder.name}.lock", lambda: None) as lock:
        if not folder.is_dir():
            work = folder.with_name(f"{folder.name}.partial")
            work.mkdir(exist_ok=True)
            ivy = Ivy.of_pyspark(find_java())
            ivy.retrieve(release.modules, work, keep_open=lock, on_line=lambda _: None).rename(folder)
            shutil.rmtree(work)
    return folder


def _write(file: Path, settings: dict[str, str]) -> None:
    file.write_text(javaproperties.dumps(settings, timestamp=False), encoding="ascii")


def _answers(cluster: OldCluster) -> bool:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    try:
        return len(client.list_topics(timeout=2).brokers) == 1
    except confluent.KafkaException:
        return False
