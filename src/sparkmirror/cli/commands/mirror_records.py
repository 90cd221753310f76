"""Prints what mirrors have written to a cluster: translated offsets, replicated topics, MM2's own records."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sparkmirror.cli.arguments import mirror_file, not_negative
from sparkmirror.cli.commands import spark_checkpoint, topics_explain
from sparkmirror.cli.exit_codes import FINE, NOT_FINE
from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.config.properties import read_properties
from sparkmirror.domain.errors import KafkaError, MalformedRecordError, SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.offsets import formatters
from sparkmirror.offsets.wire_records import Checkpoint, Heartbeat, OffsetSync
from sparkmirror.policies.replication import sources

_TRANSLATE_HELP = """\
Print the offsets at which consumer groups of an upstream cluster continue in this one, by the last
checkpoints of a mirror, Java's or this one.

With --spark-checkpoint, print the startingOffsets of a query of Spark's structured streaming for the other
cluster: as JSON, from the offsets that it has committed in its checkpoint folder, by the mirror's offset
syncs. No record is skipped. Stop the query before.

examples:
  sparkmirror translate-offsets --bootstrap-server east-1:9092 --source us-west --group billing
  sparkmirror translate-offsets --bootstrap-server east-1:9092 --source us-west --group a --group b -o json
  sparkmirror translate-offsets mm2.properties --spark-checkpoint /checkpoints/orders
"""


class _Dump(NamedTuple):
    """A command that prints every record of one of MM2's topics, the oldest first."""

    name: str
    help: str
    alias: tuple[str, str] | None
    """The option that names a cluster, and its help."""
    place: str
    """The place of that topic, for the message to users who named another cluster."""
    topic: Callable[[MirrorClient, argparse.Namespace], str]
    parse: Callable[[bytes, bytes], Any]
    json: Callable[[Any], Mapping[str, str | int]]


_DUMPS = (
    _Dump(
        "checkpoints",
        "print the checkpoints of an upstream cluster's groups",
        ("--source", "the upstream cluster"),
        "checkpoints are stored on the target of their flow, by its checkpoint connector",
        lambda client, arguments: client.policy.checkpoints_topic(arguments.source),
        Checkpoint.decode,
        formatters.checkpoint_json,
    ),
    _Dump(
        "heartbeats",
        "print the heartbeats of the flows into a cluster",
        None,
        "heartbeats are stored on the target of a flow, unless emit.heartbeats.enabled=false",
        lambda client, _: client.policy.heartbeats_topic(),
        Heartbeat.decode,
        formatters.heartbeat_json,
    ),
    _Dump(
        "offset-syncs",
        "print the offset syncs that are stored on a cluster",
        ("--other", "the flow's cluster that they are not stored on"),
        "offset syncs of A->B are stored on A (--bootstrap-server of A, --other B), or on B with "
        "offset-syncs.topic.location=target (--bootstrap-server of B, --other A)",
        lambda client, arguments: client.policy.offset_syncs_topic(arguments.other),
        OffsetSync.decode,
        formatters.offset_sync_json,
    ),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "translate-offsets",
        description=_TRANSLATE_HELP,
    )
    _add_cluster(parser, is_required=False)
    parser.add_argument("--source", metavar="ALIAS", help="the cluster that the groups are on")
    parser.add_argument(
        "--group", action="append", dest="groups", metavar="GROUP", help="a consumer group; may be repeated"
    )
    parser.add_argument(
        "file", nargs="?", type=mirror_file, metavar="FILE", help="the mirror's file, for --spark-checkpoint"
    )
    parser.add_argument(
        "--spark-checkpoint", type=Path, metavar="DIR", help="a query's checkpointLocation, on this machine"
    )
    parser.add_argument("--flow", metavar="A->B", help="of several flows of FILE, the one to move along")
    parser.add_argument(
        "--source-number",
        type=not_negative,
        metavar="N",
        help="of several Kafka sources of the query, the Nth of its plan, from 0",
    )
    parser.set_defaults(run=lambda arguments: translate_offsets(arguments, parser))
    parser = subparsers.add_parser(
        "topics",
        description="Print the topics that were replicated into a cluster, a line each: the topic, the "
        "cluster it comes from, its name there, and all clusters on its way, the nearest first.",
    )
    _add_cluster(parser, is_required=False)
    parser.add_argument("--source", metavar="ALIAS", help="only those from this cluster")
    parser.set_defaults(run=lambda arguments: topics(arguments, parser))
    verbs = parser.add_subparsers(title="commands", metavar="[COMMAND]")
    topics_explain.add_command(verbs)
    for dump in _DUMPS:
        _add_dump(subparsers, dump)


def translate_offsets(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if arguments.spark_checkpoint is not None:
        if arguments.file is None:
            parser.error("--spark-checkpoint needs FILE, the mirror's mm2.properties")
        return spark_checkpoint.run(arguments)
    for option in ("bootstrap_server", "source", "groups"):
        if getattr(arguments, option) is None:
            parser.error(
                f"--{option.replace('_', '-').rstrip('s')} is required, unless --spark-checkpoint is"
            )
    with _client(arguments) as client:
        found = client.remote_offsets_of(arguments.groups, arguments.source)
    rows = [
        {
            "group": group,
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": position.offset,
            "metadata": position.metadata,
        }
        for group, offsets in found.items()
        for partition, position in sorted(offsets.items())
    ]
    if arguments.output == "json":
        _write(json.dumps(rows, indent=2))
    else:
        for row in rows:
            _write(printable("{group}  {topic}-{partition}  {offset}".format_map(row)))
    for group in (group for group, offsets in found.items() if not offsets):
        sys.stderr.write(f"sparkmirror: group {printable(group)} has no checkpoint from {arguments.source}\n")
    return FINE if rows else NOT_FINE


def topics(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if arguments.bootstrap_server is None:
        parser.error("--bootstrap-server is required, unless a command is given")
    with _client(arguments) as client:
        policy = client.policy
        for topic in sorted(client.remote_topics(arguments.source)):
            way = sources(policy, topic)
            row = {
                "topic": topic,
                "source": way[0],
                "upstreamTopic": policy.upstream_topic(topic) or topic,
                "clusters": way,
            }
            text = "{topic}  {source}  {upstreamTopic}  ".format_map(row) + " ".join(way)
            _write(json.dumps(row) if arguments.output == "json" else text)
    return FINE


def _dump(arguments: argparse.Namespace, dump: _Dump) -> int:
    with _client(arguments) as client:
        try:
            if getattr(arguments, "last", False):
                _write_last_heartbeats(_records(client, dump, arguments), arguments.output)
                return FINE
            for record in _records(client, dump, arguments):
                fields = dump.json(record)
                is_json = arguments.output == "json"
                _write(json.dumps(fields) if is_json else printable(formatters.text_of(record, fields)))
        except KafkaError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            topic = dump.topic(client, arguments)
            raise SparkmirrorError(
                f"{arguments.bootstrap_server} has no topic {topic}: {dump.place}"
            ) from error
    return FINE


def _write_last_heartbeats(heartbeats: Iterable[Heartbeat], output: str) -> None:
    """A line for each flow, with the age of its last heartbeat."""
    last = {heartbeat.flow: heartbeat.timestamp_ms for heartbeat in heartbeats}
    for flow, timestamp_ms in sorted(last.items()):
        age_s = max(0.0, time.time() - timestamp_ms / 1000)
        if output == "json":
            row = {"source": flow.source, "target": flow.target, "timestamp": timestamp_ms}
            _write(json.dumps({**row, "ageSeconds": round(age_s, 1)}))
        else:
            _write(f"{flow}  {age_s:,.1f} s ago")


def _records(client: MirrorClient, dump: _Dump, arguments: argparse.Namespace) -> Iterator[Any]:
    for key, value in client.read(dump.topic(client, arguments)):
        try:
            yield dump.parse(key, value)
        except MalformedRecordError as error:
            sys.stderr.write(f"sparkmirror: skipped a record that is not MM2's: {printable(str(error))}\n")


def _client(arguments: argparse.Namespace) -> MirrorClient:
    properties = dict(read_properties(arguments.command_config)) if arguments.command_config else {}
    alias = {"source.cluster.alias": arguments.source} if getattr(arguments, "source", None) else {}
    return MirrorClient({**alias, **properties, "bootstrap.servers": arguments.bootstrap_server})


def _add_dump(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", dump: _Dump) -> None:
    parser = subparsers.add_parser(
        dump.name,
        description=f"{dump.help[0].upper()}{dump.help[1:]}, a line each, as Kafka's own formatters do.",
    )
    _add_cluster(parser)
    if dump.alias is not None:
        option, what = dump.alias
        parser.add_argument(option, required=True, metavar="ALIAS", help=what)
    else:
        parser.add_argument(
            "--last", action="store_true", help="only the last heartbeat of each flow, and how old it is"
        )
    parser.set_defaults(run=lambda arguments: _dump(arguments, dump))


def _add_cluster(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    parser.add_argument(
        "--bootstrap-server", required=is_required, metavar="HOST:PORT", help="the cluster to read from"
    )
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="properties of its clients, and replication.policy.* if not the defaults",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="the result's form (text)"
    )


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
