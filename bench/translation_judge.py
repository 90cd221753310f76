"""Holds what checkpoints say against the records of both sides."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from bench.bed import Bed, Broker
from bench.errors import BenchError
from bench.partition_log import read
from bench.results import Moment, TranslationRun
from bench.sides import TARGET_ALIAS, Mirroring, Side
from bench.translation_data import KINDS, PARTITIONS, TOPICS
from sparkmirror.batches.log_records import LogRecord
from sparkmirror.storage.offset_sync_topic import parse_offset_sync

_SYNCS = f"mm2-offset-syncs.{TARGET_ALIAS}.internal"

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]
EVERY_PARTITION: Sequence[Partition] = tuple(product(TOPICS, range(PARTITIONS)))


class Placed(NamedTuple):
    """A group's offset on the source, and where it continues on the target; None: at the beginning."""

    group: str
    partition: Partition
    upstream: int
    downstream: int | None


class Look(NamedTuple):
    """The places of groups at one moment, by the clock."""

    at_s: float
    placed: Sequence[Placed]


class Log(NamedTuple):
    """The records of one partition, in order."""

    offsets: list[int]
    values: list[bytes]

    def before(self, offset: int) -> int:
        return bisect_left(self.offsets, offset)


class Run(NamedTuple):
    """Offsets for which a sync speaks, the one right behind included; written when, by the clock."""

    first: int
    last: int
    written_at_s: float


@dataclass(frozen=True, slots=True)
class Judge:
    """Holds what was placed against the records of both sides."""

    there: Mapping[Partition, Log]
    here: Mapping[Partition, Log]
    """By the source's names."""
    runs: Mapping[Partition, Sequence[Run]]

    def of(self, side: Side, moment: Moment, topic: str, look: Look) -> TranslationRun:
        placed = [each for each in look.placed if each.partition[0] == topic]
        again, missed = dict.fromkeys((each.group for each in placed), 0), 0
        inside, again_inside = 0, 0
        for each in placed:
            distance = self._distance(each)
            again[each.group] += max(distance, 0)
            missed += max(-distance, 0)
            if self._is_inside(each, look.at_s):
                inside, again_inside = inside + 1, max(again_inside, distance)
        return TranslationRun(
            side=side,
            moment=moment,
            kind=KINDS[topic],
            again=tuple(again.values()),
            missed=missed,
            inside=inside / len(placed),
            again_inside_max=again_inside,
        )

    def _distance(self, placed: Placed) -> int:
        """Count the records that a group reads again; negative: that it misses."""
        was_read = self.there[placed.partition].before(placed.upstream)
        return was_read - self.here[placed.partition].before(placed.downstream or 0)

    def _is_inside(self, placed: Placed, at_s: float) -> bool:
        runs = self.runs.get(placed.partition, ())
        return any(run.first <= placed.upstream <= run.last + 1 and run.written_at_s < at_s for run in runs)


def judge(bed: Bed, mirroring: Mirroring) -> Judge:
    """Reads everything; no producer writes any more."""
    there = {partition: _log(bed.source, *partition) for partition in EVERY_PARTITION}
    here = {
        (topic, number): _log(bed.target, mirroring.target_topic(topic), number)
        for topic, number in EVERY_PARTITION
    }
    for partition, log in there.items():
        if here[partition].values != log.values:
            raise BenchError(f"{partition} is not the same on both sides: nothing can be said of its offsets")
    return Judge(there, here, _runs(bed.source))


def _log(broker: Broker, topic: str, partition: int) -> Log:
    found = list(read(broker.bootstrap, topic, partition))
    return Log([message.offset() or 0 for message in found], [message.value() or b"" for message in found])


def _runs(source: Broker) -> Mapping[Partition, Sequence[Run]]:
    """Return the runs of syncs with our header; each of Java's covers its own record."""
    runs: dict[Partition, list[Run]] = {}
    for message in read(source.bootstrap, _SYNCS, 0):
        present = dict(message.headers() or ()).items()
        headers = tuple((name, value) for name, value in present if isinstance(value, bytes))
        parsed = parse_offset_sync(LogRecord(message.key(), message.value(), headers=headers))
        if parsed is not None:
            last = parsed.sync.upstream_offset
            run = Run(last - parsed.run + 1, last, message.timestamp()[1] / 1000)
            topic, partition = parsed.sync.topic_partition
            runs.setdefault((topic, partition), []).append(run)
    return runs
