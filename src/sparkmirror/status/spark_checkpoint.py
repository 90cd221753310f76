"""Reads the committed offsets of a structured stream from its checkpoint, and translates them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_offsets import FlowOffsets

_EARLIEST: Final = -2
"""Spark's number for the earliest offset, in `startingOffsets`."""
_VERSIONS: Final = ("v1", "v2")


class CommittedBatch(NamedTuple):
    """The last batch that a query has committed: where each of its Kafka sources continues."""

    number: int
    sources: Sequence[Mapping[TopicPartition, int]]


class StreamStart(NamedTuple):
    """`offsets` are on the target; `unknown` are partitions that begin at the earliest there.

    `is_same`: topics and offsets are those of the source, so that the checkpoint itself is valid there.
    `inexact` are partitions of which some records are read again.
    """

    offsets: Mapping[TopicPartition, int]
    unknown: Collection[TopicPartition]
    inexact: Collection[TopicPartition]
    is_same: bool

    def to_json(self) -> Mapping[str, Mapping[str, int]]:
        """Return the value of `startingOffsets`."""
        topics: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(self.offsets.items()):
            topics.setdefault(topic, {})[str(partition)] = offset
        return topics


def committed_batch(checkpoint: Path) -> CommittedBatch:
    """Read a query's checkpoint folder. Raises SparkmirrorError where it has committed nothing from Kafka."""
    offsets = checkpoint / "offsets"
    if not offsets.is_dir():
        raise SparkmirrorError(f"{checkpoint} is no checkpoint of a structured stream: it has no offsets/")
    committed = [each for each in _batches(checkpoint / "commits") if (offsets / str(each)).is_file()]
    if not committed:
        raise SparkmirrorError(f"{checkpoint}: the query has committed no batch yet; start it as a new query")
    number = max(committed)
    try:
        sources = list(_sources((offsets / str(number)).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise SparkmirrorError(f"{offsets / str(number)} can't be read: {error}") from error
    if not sources:
        raise SparkmirrorError(f"{offsets / str(number)} has no offsets of Kafka")
    return CommittedBatch(number, sources)


def stream_start(access: FlowAccess, source: Mapping[TopicPartition, int]) -> StreamStart:
    """Translate a source's offsets for the flow's target; never beyond them. Raises KafkaError."""
    policy, alias = access.source.policy, access.flow.source
    with closing(FlowOffsets(access)) as known:
        known.read(source)
        translated = known.translate(source)
        places = {it: known.place(it, offset) for it, offset in source.items()}
        preserved = {it for it in source if known.is_preserved(it)}
    offsets, unknown, inexact = {}, [], []
    for it, offset in source.items():
        remote = it._replace(topic=policy.format_remote_topic(alias, it.topic))
        found = offset if it in preserved else translated[it].offset
        offsets[remote] = _EARLIEST if found is None else found
        place = places[it]
        if found is None:
            unknown.append(remote)
        elif it not in preserved and (place is None or place.behind_max != 0):
            inexact.append(remote)
    is_same = len(preserved) == len(source) and offsets == source
    return StreamStart(offsets, unknown, inexact, is_same=is_same)


def _batches(folder: Path) -> Iterator[int]:
    """List the numbers of a log's files; Spark keeps others beside them."""
    for file in folder.iterdir() if folder.is_dir() else ():
        if file.name.isdecimal():
            yield int(file.name)


def _sources(text: str) -> Iterator[Mapping[TopicPartition, int]]:
    """Parse a file of offsets/: version, metadata, and a line for each source. Raises ValueError."""
    version, _, *lines = text.splitlines()
    if version not in _VERSIONS:
        raise ValueError(f"it has the unknown version {version[:20]!r}")
    for line in lines:
        # From v2 on, the source's name comes first.
        offsets = _kafka_offsets(line[line.find("{") :] if "{" in line else "")
        if offsets:
            yield offsets


def _kafka_offsets(text: str) -> Mapping[TopicPartition, int]:
    """Parse a source's end offsets; none for a source that is not Kafka."""
    try:
        found: Any = json.loads(text)
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        return {}
