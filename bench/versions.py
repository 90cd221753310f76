"""Measures two versions of sparkmirror against each other: a checkout beside this one, on the same brokers.

`python -m bench.versions CHECKOUT [--only PART ...] [--pairs N] [--partitions N]`. With `--preserved`
instead of a checkout, this version as it is against itself with `offsets.preserve=true`, which does the same
as long as no offset is missing. Runs of different minutes
differ by more than the versions do: so runs are short, alternate, and only the two of a pair are compared;
CPU seconds say more than rates where others use the machine. Each run is one copy task without Spark.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from confluent_kafka import Producer

from bench import dataset, latency
from bench.bed import Bed, opened
from bench.dataset import Dataset
from bench.errors import BenchError
from bench.latency import Timing
from bench.measures import Spread, middle_half
from bench.sides import Mirroring, Side, properties
from bench.version_task import Mark
from bench.workloads import BY_NAME, DATA_PREFIX, IN_TRANSACTIONS, PARTITIONS, Workload
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.state_topics import StateTopic

_HERE: Final = Path(__file__).parents[1]
_BATCH_BYTES: Final = 128 << 10
_WARM: Final = 0.1
"""The share of the records that is not measured: connections are made, producer ids proven."""
COPIED: Final = {
    "plain": replace(BY_NAME["1kb"], records=1_000_000, mm2_records=1_000_000),
    "plain-lz4": replace(BY_NAME["1kb-lz4"], records=1_500_000, mm2_records=1_500_000),
    "compacted": replace(BY_NAME["compacted"], records=400_000, mm2_records=400_000),
    "transactional": replace(IN_TRANSACTIONS, records=400_000, mm2_records=400_000),
}
"""By part: what both versions copy."""
_LATENCY: Final = "latency"
_START: Final = "start"
_PARTS: Final = (*COPIED, _LATENCY, _START)
_TIMING: Final = Timing(warm_up_s=4.0, seconds=10.0)
_START_TOPICS: Final = 10


class Version(NamedTuple):
    name: str
    checkout: Path
    is_preserved: bool = False
    """Whether it runs with `offsets.preserve=true`."""


class Kind(Protocol):
    """A kind of runs that are compared; its name is fit for an alias."""

    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=Kind)


class Pair(NamedTuple):
    """A figure of the version before, and of this one."""

    before: float
    now: float

    @property
    def ratio(self) -> float:
        return self.now / self.before

    @property
    def difference(self) -> float:
        return self.now - self.before


Figures = Mapping[str, float]
"""Figures of one run, by name with unit."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.versions", description=__doc__)
    other = parser.add_mutually_exclusive_group(required=True)
    other.add_argument("checkout", type=Path, nargs="?", help="of the version before")
    other.add_argument("--preserved", action="store_true", help="compare offsets.preserve=true, not versions")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS, metavar="PART")
    parser.add_argument("--pairs", type=int, default=10, help="of runs, for each part (10)")
    parser.add_argument("--partitions", type=int, default=5000, help="of a start (5,000)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    versions = (
        Version("before", _HERE if options.preserved else options.checkout.resolve()),
        Version("now", _HERE, is_preserved=options.preserved),
    )
    with (
        tempfile.TemporaryDirectory(prefix="sparkmirror-bench-") as folder,
        opened(Path(folder), 1, print) as bed,
    ):
        for part in options.only:
            if part == _START:
                compare_starts(bed, versions, options.partitions, options.pairs)
            elif part == _LATENCY:
                compare(part, versions, options.pairs, _latency_run(bed))
            else:
                data = write(bed, COPIED[part])
                compare(part, versions, options.pairs, _copy_run(bed, data))
                bed.drop_data()


def write(bed: Bed, workload: Workload) -> Dataset:
    data = dataset.write(bed.source, workload, _BATCH_BYTES)
    print(f"{workload.title}: {data.records:,} records, {data.records_per_batch:.0f} in a batch")
    return data


def compare(part: str, kinds: tuple[K, K], pairs: int, measure: Callable[[K, str], Figures]) -> None:
    """Pairs of runs, the kind that comes first changing; each gets an alias of its own."""
    before, now = names = kinds[0].name, kinds[1].name
    runs: list[tuple[Figures, Figures]] = []
    for number in range(pairs + 1):
        figures = {
            kind.name: measure(kind, f"{part}{number}{kind.name}".replace("-", ""))
            for kind in (kinds if number % 2 else kinds[::-1])
        }
        if number:  # the first pair warms the brokers up
            runs.append((figures[before], figures[now]))
            report(f"{part} {number}", runs[-1:], names)
    report(f"{part}, {pairs} pairs", runs, names)


def report(
    title: str, runs: Sequence[tuple[Figures, Figures]], names: tuple[str, str] = ("before", "now")
) -> None:
    """Print the medians of each figure, of its ratios and differences, and the quartiles of these."""
    for name in runs[0][0]:
        pairs = [Pair(before[name], now[name]) for before, now in runs]
        before, now, ratio, difference = (
            _spread([value(pair) for pair in pairs])
            for value in map(attrgetter, ("before", "now", "ratio", "difference"))
        )
        print(
            f"{title}: {name}: {before.median:,.3f} {names[0]}, {now.median:,.3f} {names[1]}; "
            f"ratio {_shown(ratio)}, "
            f"difference {_shown(difference)}",
            flush=True,
        )


def _spread(values: Sequence[float]) -> Spread:
    spread = middle_half(values)
    assert spread is not None
    return spread


def _shown(spread: Spread) -> str:
    if spread.low == spread.high:
        return f"{spread.median:.3f}"
    return f"{spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f})"


# one task


class Task:
    """`bench.version_task` of a version, running, whose marks can be read in their order."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def mark(self) -> Mark:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise BenchError("a copy task has ended")
        return Mark(*json.loads(line))

    def stop(self) -> None:
        """Stop the task in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


@contextmanager
def started(
    version: Version, file: Path, topics: Sequence[str], partitions: int, marks: Sequence[int] = ()
) -> Iterator[Task]:
    """After the block it is killed, if it still runs."""
    command = [sys.executable, "-m", "bench.version_task", str(file), "--topics", *topics]
    command += ["--partitions", str(partitions), "--marks", *map(str, marks)]
    command += ["--preserved"] if version.is_preserved else []
    environment = {**os.environ, "PYTHONPATH": f"{version.checkout / 'src'}{os.pathsep}{_HERE}"}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Task(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def prepare(bed: Bed, version: Version, alias: str, topics: Sequence[str], partitions: int) -> Path:
    """The topics that a mirror makes before its tasks start; its file."""
    mirroring: Mirroring = bed.mirroring(alias, ",".join(topics), tasks_max=1)
    file = bed.folder / f"{alias}.properties"
    added = {"offsets.preserve": "true"} if version.is_preserved else {}
    file.write_text(properties(mirroring, Side.OURS, added))
    source = Alias(alias)
    for state in (
        f"mm2-offsets.{alias}.internal",
        StateTopic.PROGRESS.of(source),
        StateTopic.ATTEMPTS.of(source),
    ):
        bed.target.topics.create(state, 1, {"cleanup.policy": "compact"})
    for topic in topics:
        bed.target.topics.create(mirroring.target_topic(topic), partitions)
    return file


# the parts


def _copy_run(bed: Bed, data: Dataset) -> Callable[[Version, str], Figures]:
    def measure(version: Version, alias: str) -> Figures:
        try:
            file = prepare(bed, version, alias, [data.topic], PARTITIONS)
            marks = int(data.records * _WARM), data.records
            with started(version, file, [data.topic], PARTITIONS, marks) as task:
                warm, source_s, target_s = task.mark(), bed.source.cpu_s(), bed.target.cpu_s()
                last = task.mark()
                brokers_s = bed.source.cpu_s() - source_s + bed.target.cpu_s() - target_s
                task.stop()
        finally:
            bed.clean()
        records = last.records - warm.records
        gigabytes = records * data.bytes_per_batch / data.records_per_batch / 1e9
        cpu_s = last.cpu_s - warm.cpu_s
        return {
            "records/s": records / (last.at_s - warm.at_s),
            "CPU s per million records": cpu_s * 1e6 / records,
            "CPU s per GB": cpu_s / gigabytes,
            "brokers' CPU s per million records": brokers_s * 1e6 / records,
        }

    return measure


def _latency_run(bed: Bed) -> Callable[[Version, str], Figures]:
    def measure(version: Version, alias: str) -> Figures:
        with latency.source_topic(bed) as topic:
            file = prepare(bed, version, alias, [topic], PARTITIONS)
            read = (bed.target.bootstrap, f"{alias}.{topic}")
            with started(version, file, [topic], PARTITIONS) as task:
                found = latency.observe(bed, read, _TIMING, None)
                task.stop()
        return {"p50 ms": found.p50_ms, "p99 ms": found.p99_ms}

    return measure


def compare_starts(bed: Bed, versions: Sequence[Version], partitions: int, pairs: int) -> None:
    """A record comes to each partition while nothing runs: until all are copied, after a start.

    Each version's task is stopped in order and killed in turn, and continues where it was.
    """
    topics = [f"{DATA_PREFIX}start-{number}" for number in range(_START_TOPICS)]
    for topic in topics:
        bed.source.topics.create(topic, partitions // _START_TOPICS)
    files = {
        version: prepare(bed, version, f"start{version.name}", topics, partitions // _START_TOPICS)
        for version in versions
    }
    runs: dict[str, list[tuple[Figures, Figures]]] = {}
    before = "the first one"
    for number in range(2 * pairs + 1):
        _fill(bed, topics, partitions // _START_TOPICS)
        is_killed = number % 2 == 1
        figures = {
            version.name: _start(bed, version, files[version], topics, partitions, is_killed=is_killed)
            for version in (versions if number // 2 % 2 else versions[::-1])
        }
        runs.setdefault(before, []).append((figures["before"], figures["now"]))
        report(f"start {number}, {before}", runs[before][-1:])
        before = "after a crash" if is_killed else "after an orderly stop"
    for title, found in runs.items():
        report(f"start with {partitions:,} partitions, {title}, {len(found)} pairs", found)
    bed.clean()
    bed.drop_data()


def _start(
    bed: Bed, version: Version, file: Path, topics: Sequence[str], partitions: int, *, is_killed: bool
) -> Figures:
    """Run a task that ends in the way after which the next one is to start."""
    with started(version, file, topics, partitions // len(topics), [partitions]) as task:
        brokers_s = bed.source.cpu_s() + bed.target.cpu_s()
        mark = task.mark()
        brokers_s = bed.source.cpu_s() + bed.target.cpu_s() - brokers_s
        if is_killed:
            task.process.kill()
        else:
            task.stop()
    return {"s": mark.at_s, "CPU s": mark.cpu_s, "brokers' CPU s": brokers_s}


def _fill(bed: Bed, topics: Sequence[str], partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bed.source.bootstrap})
    for topic, partition in product(topics, range(partitions)):
        producer.produce(topic, b"one", partition=partition)
    producer.flush()


if __name__ == "__main__":
    main()
