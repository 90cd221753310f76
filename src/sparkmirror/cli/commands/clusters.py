"""Defines `sparkmirror clusters`: starts, stops and shows named local Kafka clusters."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

from rich.console import Console

from sparkmirror.cli.exit_codes import FINE, NOT_FINE
from sparkmirror.cli.terminal import StatusLines, aligned
from sparkmirror.clusters.broker import Broker
from sparkmirror.clusters.local import LocalCluster
from sparkmirror.clusters.named import ClusterRequest, NamedClusters
from sparkmirror.domain.errors import ClusterStartError
from sparkmirror.domain.quantities import as_size
from sparkmirror.java.find_java import find_java
from sparkmirror.java.jars import ensure_jars, kafka_jars, kafka_tools_jars

_TOOLS: Final = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
}
_TOOL_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

_EXAMPLES = """\
examples:
  sparkmirror clusters up                       # two clusters, source and target
  sparkmirror clusters up big --brokers 3       # one cluster of three brokers
  sparkmirror clusters up old --set log.retention.ms=60000 --set num.partitions=8
  sparkmirror clusters tool source kafka-topics --create --topic orders --partitions 3
  seq 100 | sparkmirror clusters tool source kafka-console-producer --topic orders
  sparkmirror clusters status -o json
  sparkmirror clusters down source target
  sparkmirror clusters down --all --delete-data
"""
_TOOL_HELP: Final = """\
Runs one of Kafka's own command-line tools; --bootstrap-server is given already. Its jars are fetched from
Maven Central once, 43 MB. The tool's own --help lists what it takes.

examples:
  sparkmirror clusters tool source kafka-topics --create --topic orders --partitions 3
  seq 100 | sparkmirror clusters tool source kafka-console-producer --topic orders
  sparkmirror clusters tool target kafka-topics --list
  sparkmirror clusters tool target kafka-console-consumer --topic source.orders --from-beginning
  sparkmirror clusters tool source kafka-console-consumer --topic orders --group billing --from-beginning
  sparkmirror clusters tool source kafka-consumer-groups --describe --all-groups
"""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A broker as `status` shows it; `up` means that it responds."""

    id: int
    up: bool
    address: str
    pid: int | None
    data_bytes: int
    log: str

    @classmethod
    def of(cls, broker: Broker) -> "BrokerStatus":
        pid = broker.process.pid if broker.process and broker.is_alive() else None
        up = pid is not None and broker.answers(cluster_size=1)
        return cls(broker.node_id, up, broker.address, pid, broker.data_bytes(), str(broker.log))


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster as `status` shows it."""

    name: str
    bootstrap_servers: str
    settings: dict[str, str]
    brokers: list[BrokerStatus]

    @classmethod
    def of(cls, cluster: LocalCluster) -> "ClusterStatus":
        brokers = [BrokerStatus.of(broker) for broker in cluster.brokers]
        return cls(cluster.spec.name, cluster.bootstrap_servers, dict(cluster.spec.settings), brokers)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "clusters",
        description="Start, stop and show local Kafka clusters: real brokers, which run until `down`.",
        epilog=_EXAMPLES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_up(actions)
    _add_tool(actions)
    _add_down(actions)
    _add_status(actions)


def up(arguments: argparse.Namespace) -> int:
    settings = dict(arguments.settings) if arguments.settings else None
    requests = [ClusterRequest(name, arguments.brokers, settings) for name in dict.fromkeys(arguments.names)]
    with StatusLines(Console(stderr=True)).updates() as update:
        clusters = NamedClusters().up(requests, update)
    for cluster in clusters:
        sys.stdout.write(f"{cluster.spec.name} is up at {cluster.bootstrap_servers}\n")
    return 0


def tool(arguments: argparse.Namespace) -> int:
    """Become a tool of Kafka's; returns only by an error."""
    cluster = NamedClusters().known(arguments.cluster)
    if not cluster.pids:
        name = cluster.spec.name
        raise ClusterStartError(f"Cluster {name} is down. Start it: sparkmirror clusters up {name}")
    with StatusLines(Console(stderr=True)).updates() as update:
        jars = [ensure_jars(each, on_progress=update) for each in (kafka_tools_jars(), kafka_jars())]
    java, classes = find_java().executable, os.pathsep.join(f"{folder}/*" for folder in jars)
    command = [java, *_TOOL_JVM, "-cp", classes, _TOOLS[arguments.tool]]
    command += ["--bootstrap-server", cluster.bootstrap_servers, *arguments.arguments]
    os.execv(java, command)  # noqa: S606 - no shell is wanted


def down(arguments: argparse.Namespace) -> int:
    clusters = NamedClusters()
    known = (cluster.spec.name for cluster in clusters.all())
    names = list(dict.fromkeys(known if arguments.all else arguments.names))
    with StatusLines(Console(stderr=True)).updates() as update:
        clusters.down(names, update, delete_data=arguments.delete_data)
    for name in names:
        sys.stdout.write(f"{name} is down{', its data is deleted' if arguments.delete_data else ''}\n")
    return 0


def status(arguments: argparse.Namespace) -> int:
    found = [ClusterStatus.of(cluster) for cluster in NamedClusters().all()]
    if arguments.output == "json":
        sys.stdout.write(json.dumps([asdict(cluster) for cluster in found], indent=2) + "\n")
    elif found:
        sys.stdout.writelines(f"{line}\n" for line in aligned(list(_rows(found))))
    else:
        sys.stdout.write("There are no clusters yet. Start two with: sparkmirror clusters up\n")
    everything_up = all(broker.up for cluster in found for broker in cluster.brokers)
    return FINE if everything_up else NOT_FINE


def _add_up(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "up",
        help="start clusters, with their earlier data",
        description="Start clusters, with the data of an earlier start, and print their addresses. Topics on "
        "one broker can have only one replica: set the replication factors in mm2.properties to 1, or start "
        "three brokers.",
    )
    default = ["source", "target"]
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        type=_name,
        default=default,
        help=f"a cluster (default: {' and '.join(default)})",
    )
    parser.add_argument("--brokers", type=int, choices=(1, 3), help="brokers per cluster (1)")
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        type=_setting,
        help="a line of server.properties; may be repeated",
    )
    parser.set_defaults(run=up)


def _add_tool(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "tool",
        help="run one of Kafka's own command-line tools on a cluster",
        description=_TOOL_HELP,
    )
    parser.add_argument("cluster", metavar="NAME", help="a cluster that is up")
    parser.add_argument("tool", choices=list(_TOOLS), metavar="TOOL", help=", ".join(_TOOLS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the tool takes")
    parser.set_defaults(run=tool)


def _add_down(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "down",
        help="stop clusters; their data stays",
        description="Stop clusters. Their data stays for the next start, except with --delete-data.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("names", nargs="*", metavar="NAME", default=[], help="a cluster")
    which.add_argument("--all", action="store_true", help="every cluster")
    parser.add_argument("--delete-data", action="store_true", help="delete the clusters and their data")
    parser.set_defaults(run=down)


def _add_status(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "status",
        help="brokers, addresses, sizes, logs",
        description="Print every broker's state, address, size of data and log file.",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="the result's form (table)"
    )
    parser.set_defaults(run=status)


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name: letters, digits, dots, dashes, underscores"
        )
    return text


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value.strip()


def _rows(clusters: Iterable[ClusterStatus]) -> Iterator[tuple[str, ...]]:
    yield ("CLUSTER", "BROKER", "STATE", "ADDRESS", "DATA", "LOG")
    for cluster in clusters:
        for broker in cluster.brokers:
            state = "up" if broker.up else "no answer" if broker.pid else "down"
            size = as_size(broker.data_bytes)
            yield (cluster.name, str(broker.id), state, broker.address, size, broker.log)
