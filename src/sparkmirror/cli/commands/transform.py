"""Defines `sparkmirror transform try`: what a file's transforms make of records that are there now."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.cli.arguments import mirror_file, positive
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.explanations import print_line
from sparkmirror.cli.mirroring_flows import add_flow_argument, mirroring_flows
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.printable import printable
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, require_offsets
from sparkmirror.kafka.data.partition_reader import PartitionReader, SpanReader
from sparkmirror.settings.configured import MirroringFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.settings.source import transforms_of
from sparkmirror.settings.topic_selection import remote_topic
from sparkmirror.spark.required import require_spark
from sparkmirror.transforms.chain import Chain

if TYPE_CHECKING:
    from sparkmirror.transforms.trial import Row, Tried

_DESCRIPTION: Final = """\
Reads the newest records of a topic from a flow's source, and shows what the transforms of the file make of
each. Writes nothing; the mirror may be running.

example:
  sparkmirror transform try mm2.properties --topic orders --limit 20
"""
_SHOWN: Final = ("key", "value", "headers", "timestamp")
_SHOWN_MAX: Final = 60


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("transform", description="Try the transforms of a mirror.")
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    trial = verbs.add_parser("try", help="records before and after the transforms", description=_DESCRIPTION)
    trial.add_argument("file", type=mirror_file, metavar="FILE", help="the mm2.properties of the mirror")
    add_flow_argument(trial)
    trial.add_argument("--topic", required=True, metavar="T", help="a topic, by its name on the source")
    trial.add_argument(
        "--limit", type=positive, default=20, metavar="N", help="the most records to show (20)"
    )
    trial.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    require_spark()
    console = Console()
    failed = False
    try:
        flows = mirroring_flows(arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow)
        for flow in flows:
            failed = _show(console, flow, arguments.topic, arguments.limit) or failed
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror transform try: {printable(str(error))}\n")
        return CANNOT_TELL
    return NOT_FINE if failed else FINE


def _show(console: Console, flow: MirroringFlow, topic: str, limit: int) -> bool:
    """Print a flow's records; whether a transform fails with one."""
    settings = flow.connector.settings
    chain = transforms_of(settings, topic)
    console.print(
        f"{flow.name}  {topic} as {remote_topic(settings, topic)}",
        style="bold",
        highlight=False,
        markup=False,
    )
    if chain is None:
        print_line(console, "no transform may change its records")
    count, failures = 0, 0
    for partition, each in _tried(flow.connector.consumer_of(0), topic, limit, chain):
        _print(console, partition, each)
        count += 1
        failures += each.failure is not None
    if not count:
        print_line(console, "it has no records")
    return failures > 0


def _tried(
    consumer: ConsumerSettings, topic: str, limit: int, chain: Chain | None
) -> "Iterator[tuple[TopicPartition, Tried]]":
    """Try the newest records, of each partition as many, up to the limit. Raises KafkaError."""
    from sparkmirror.transforms.trial import tried  # noqa: PLC0415 - needs pyarrow, the parser does not

    with closing(PartitionReader(consumer)) as reader:
        partitions = reader.partitions(topic)
    starts = require_offsets(consumer, partitions, EARLIEST)
    ends = require_offsets(consumer, partitions, LATEST)
    with closing(SpanReader(consumer)) as spans:
        for number, partition in enumerate(partitions):
            share = (limit + len(partitions) - 1 - number) // len(partitions)
            wanted = range(max(starts[partition], ends[partition] - share), ends[partition])
            batches = [
                batch
                for batch in spans.read(partition, wanted.start, wanted.stop)
                if not batch.header.attributes & CONTROL and batch.header.record_count
            ]
            if batches:
                yield from ((partition, each) for each in tried(batches, partition, wanted, chain))


def _print(console: Console, partition: TopicPartition, each: "Tried") -> None:
    place = f"{partition} offset {each.before['offset']}"
    print_line(console, f"{place}: {_text(each.before, _SHOWN)}")
    if each.failure is not None:
        print_line(console, f"  ✗ {each.failure}")
    elif each.after is None:
        print_line(console, "  left out")
    elif not each.is_changed:
        print_line(console, "  unchanged")
    else:
        changed = [name for name in _SHOWN if each.after[name] != each.before[name]]
        print_line(console, f"  → {_text(each.after, changed)}")


def _text(row: "Row", names: Sequence[str]) -> str:
    shown = [name for name in names if name != "headers" or row[name] is not None or len(names) == 1]
    return ", ".join(f"{name} {_short(row[name])}" for name in shown)


def _short(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bytes():
            text = value.decode(errors="backslashreplace")
        case list():
            text = ", ".join(f"{_short(each['key'])}={_short(each['value'])}" for each in value)
        case _:
            text = value.isoformat(timespec="milliseconds")
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
