"""The sides that are compared, and how each is started.

MM2 is started as connect-mirror-maker.sh does (its heap and kafka-run-class.sh's JVM options). `mm2-tuned`
adds what Strimzi's "Handling high volumes of messages" gives for MirrorMaker 2
(https://strimzi.io/docs/operators/latest/deploying#con-high-volume-config-properties-str): producer
batch.size 327680 and linger.ms 100, consumer fetch.max.bytes 52428800, max.partition.fetch.bytes 1048576
and max.poll.records 500, and offset.flush.timeout.ms 10000. The consumer's three are Kafka's defaults,
written out as the page does.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

TARGET_ALIAS = "target"
FLOW = "FLOW."
"""The prefix of a workload's settings that are a flow's own."""


class Side(Enum):
    OURS = "ours"
    MM2 = "mm2"
    MM2_TUNED = "mm2-tuned"
    CEILING = "ceiling"
    CEILING_READS = "ceiling-reads"
    RELAY = "relay"

    @property
    def title(self) -> str:
        return _TITLES[self]

    @property
    def is_java(self) -> bool:
        return self in {Side.MM2, Side.MM2_TUNED}

    @property
    def is_ceiling(self) -> bool:
        return self in {Side.CEILING, Side.CEILING_READS}


_TITLES = {
    Side.OURS: "sparkmirror",
    Side.MM2: "MM2, defaults",
    Side.MM2_TUNED: "MM2, tuned",
    Side.CEILING: "ceiling",
    Side.CEILING_READS: "ceiling that reads",
    Side.RELAY: "relay",
}

JVM_OPTIONS = (
    "-Xms256M",
    "-Xmx2G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

# Root at INFO to standard output, as connect-log4j2.yaml has it.
_LOG4J_SETTINGS = files("sparkmirror.clusters") / "log4j2.properties"

STRIMZI_PAGE = "https://strimzi.io/docs/operators/latest/deploying#con-high-volume-config-properties-str"
STRIMZI_HIGH_VOLUME = {
    "producer.override.batch.size": "327680",
    "producer.override.linger.ms": "100",
    "consumer.fetch.max.bytes": "52428800",
    "consumer.max.partition.fetch.bytes": "1048576",
    "consumer.max.poll.records": "500",
}
STRIMZI_WORKER = {"offset.flush.timeout.ms": "10000"}


@dataclass(frozen=True, slots=True)
class Mirroring:
    """One flow, as mm2.properties says it. A fresh `source_alias` makes a side start from nothing."""

    source_alias: str
    source_bootstrap: str
    target_bootstrap: str
    topics: str
    tasks_max: int
    security: Mapping[str, str] = field(default_factory=dict)
    """Settings for clients of both clusters, to be written behind an alias."""

    def target_topic(self, topic: str) -> str:
        """DefaultReplicationPolicy's name."""
        return f"{self.source_alias}.{topic}"


def properties(mirroring: Mirroring, side: Side, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """mm2.properties: the same for every side, plus `more`, plus Strimzi's settings for MM2_TUNED.

    One broker a cluster, hence replication factors of 1; no authorizer, hence no ACL sync; one flow, hence no
    heartbeats for the way back.
    """
    flow = f"{mirroring.source_alias}->{TARGET_ALIAS}"
    back = f"{TARGET_ALIAS}->{mirroring.source_alias}"
    settings = {
        "clusters": f"{mirroring.source_alias}, {TARGET_ALIAS}",
        f"{mirroring.source_alias}.bootstrap.servers": mirroring.source_bootstrap,
        f"{TARGET_ALIAS}.bootstrap.servers": mirroring.target_bootstrap,
        f"{flow}.enabled": "true",
        f"{flow}.topics": mirroring.topics,
        f"{back}.emit.heartbeats.enabled": "false",
        "tasks.max": str(mirroring.tasks_max),
        "sync.topic.acls.enabled": "false",
        **dict.fromkeys(_replication_factors(), "1"),
        **{
            f"{alias}.{key}": value
            for alias in (mirroring.source_alias, TARGET_ALIAS)
            for key, value in mirroring.security.items()
        },
        **{key.replace(FLOW, f"{flow}."): value for key, value in more.items()},
    }
    if side is Side.MM2_TUNED:
        settings |= {f"{flow}.{key}": value for key, value in STRIMZI_HIGH_VOLUME.items()}
        settings |= {f"{TARGET_ALIAS}.{key}": value for key, value in STRIMZI_WORKER.items()}
    return _as_text(settings)


def _replication_factors() -> Iterable[str]:
    yield "replication.factor"
    yield from (
        f"{topic}.topic.replication.factor" for topic in ("checkpoints", "heartbeats", "offset-syncs")
    )
    yield from (f"{storage}.storage.replication.factor" for storage in ("config", "offset", "status"))


def _as_text(settings: Mapping[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in settings.items())


def worker_properties(bootstrap: str, url: str, group: str, more: Mapping[str, str]) -> str:
    """A Connect worker's file, the same for every side, plus `more`."""
    topics = {"config": "configs", "offset": "offsets", "status": "status"}
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "listeners": url,
        "plugin.discovery": "service_load",
        **{f"{kind}.converter": converter for kind in ("key", "value", "header")},
        **{f"{kind}.storage.topic": f"{group}-{name}" for kind, name in topics.items()},
        **{f"{kind}.storage.replication.factor": "1" for kind in topics},
        **more,
    }
    return _as_text(settings)


def mm2_command(java: str, jars: Path, properties_file: Path) -> list[str]:
    """`jars` holds connect-mirror, connect-runtime and what they need."""
    return _java_command(java, jars, "org.apache.kafka.connect.mirror.MirrorMaker", properties_file)


def java_worker_command(java: str, jars: Path, properties_file: Path) -> list[str]:
    """Return the command of connect-distributed.sh, with the same heap and JVM options."""
    main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
    return _java_command(java, jars, main_class, properties_file)


def _java_command(java: str, jars: Path, main_class: str, properties_file: Path) -> list[str]:
    return [
        java,
        *JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={_LOG4J_SETTINGS}",
        "-cp",
        f"{jars}/*",
        main_class,
        str(properties_file),
    ]


def our_command(properties_file: Path) -> list[str]:
    """The installed `sparkmirror` beside this Python."""
    return _sparkmirror("run", properties_file)


def our_worker_command(properties_file: Path) -> list[str]:
    return _sparkmirror("worker", properties_file)


def _sparkmirror(command: str, properties_file: Path) -> list[str]:
    program = Path(sys.executable).with_name("sparkmirror")
    log = properties_file.with_suffix(".spark.log")
    return [str(program), command, str(properties_file), "--log-file", str(log)]


def ceiling_command(side: Side, mirroring: Mirroring, topic: str, records: int) -> list[str]:
    """Return a producer with as many connections as the mirrors have tasks."""
    command = [sys.executable, "-m", "bench.replay"]
    command += ["--from", mirroring.source_bootstrap, "--to", mirroring.target_bootstrap]
    command += ["--topic", topic, "--target-topic", mirroring.target_topic(topic)]
    command += ["--records", str(records), "--connections", str(mirroring.tasks_max)]
    return [*command, "--read"] if side is Side.CEILING_READS else command


def relay_command(mirroring: Mirroring, topic: str) -> list[str]:
    """Return a relay with as many processes as the mirrors have tasks."""
    command = [sys.executable, "-m", "bench.relay"]
    command += ["--from", mirroring.source_bootstrap, "--to", mirroring.target_bootstrap]
    command += ["--topic", topic, "--target-topic", mirroring.target_topic(topic)]
    return [*command, "--tasks", str(mirroring.tasks_max)]
