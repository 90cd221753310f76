"""Prints where a structured stream continues on the other cluster: `translate-offsets --spark-checkpoint`."""

import argparse
import json
import sys
from collections.abc import Collection

from sparkmirror.cli.exit_codes import FINE, NOT_FINE
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import some_of
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.spark_checkpoint import CommittedBatch, StreamStart, committed_batch, stream_start


def run(arguments: argparse.Namespace) -> int:
    """Print the JSON on standard output, and what is to know about it on standard error."""
    batch = committed_batch(arguments.spark_checkpoint)
    flows = mirroring_flows(
        arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow and [arguments.flow]
    )
    if len(flows) != 1:
        raise SparkmirrorError(f"{arguments.file} has several flows: --flow names one")
    (flow,) = flows
    start = stream_start(FlowAccess.of(*flow), _source(batch, arguments.source_number))
    for line in _notes(batch, start):
        sys.stderr.write(f"sparkmirror: {printable(line)}\n")
    sys.stdout.write(json.dumps(start.to_json(), separators=(",", ":")) + "\n")
    return NOT_FINE if start.unknown else FINE


def _source(batch: CommittedBatch, number: int | None) -> dict[TopicPartition, int]:
    count = len(batch.sources)
    if number is None and count > 1:
        raise SparkmirrorError(f"the query has {count} Kafka sources: --source-number names one, from 0")
    if number is not None and number >= count:
        raise SparkmirrorError(f"--source-number {number}: the query's {count} Kafka sources begin with 0")
    return dict(batch.sources[number or 0])


def _notes(batch: CommittedBatch, start: StreamStart) -> list[str]:
    notes = [f"as of batch {batch.number}, the last one that the query has committed"]
    if start.is_same:
        notes.append(
            "topics and offsets are the same on both clusters: there is nothing to do but to set "
            "kafka.bootstrap.servers, and the query continues from its checkpoint"
        )
    if start.inexact:
        notes.append(f"some records are read again, none is skipped: {_named(start.inexact)}")
    if start.unknown:
        notes.append(f"no offset is known on the target, begins at the earliest: {_named(start.unknown)}")
    return notes


def _named(partitions: Collection[TopicPartition]) -> str:
    return some_of([str(partition) for partition in partitions])
