"""A topic whose batches have gaps, made by the broker's own cleaner.

About every second record of a partition has the same key, so that of those the cleaner leaves one. It works
on closed segments; they are small, so the part at a partition's end that it leaves alone is small too.
"""

import random
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from bench.errors import BenchError
from bench.topics import Topics
from bench.workloads import KEY_BYTES, PARTITIONS

_COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
_SEGMENT_BYTES = "segment.bytes"
_RECURRING_KEY = "the-same"
_CHECKPOINT = "cleaner-offset-checkpoint"
_TIMEOUT_S = 120.0


def create(topics: Topics, topic: str, partitions: int = PARTITIONS, segment_bytes: int = 8 << 20) -> None:
    topics.create(topic, partitions, {**_COMPACTED, _SEGMENT_BYTES: str(segment_bytes)})


def keyed(values: list[bytes], records: int) -> Iterator[tuple[str, bytes]]:
    """Keys and values of so many records, of which about half outlive compaction."""
    dice = random.Random(1)
    for number, value in enumerate(islice(cycle(values), records)):
        yield _RECURRING_KEY if dice.random() < 0.5 else f"{number:0{KEY_BYTES}d}", value


def finish(topics: Topics, data: Path, topic: str, partitions: int = PARTITIONS) -> None:
    """Wait until every closed segment is clean; then make it a topic as any other.

    So no cleaner works beside a mirror, nor on its target, which would get the topic's settings.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    while not _is_clean(data, topic, partitions):
        if time.monotonic() > deadline:
            raise BenchError(f"{topic} was not compacted within {_TIMEOUT_S:.0f} s")
        time.sleep(0.2)
    topics.reset_config(topic, (*_COMPACTED, _SEGMENT_BYTES))


def _is_clean(data: Path, topic: str, partitions: int) -> bool:
    """Whether the cleaner has come to the last segment of each partition."""
    (checkpoint,) = data.rglob(_CHECKPOINT)
    cleaned = parse_checkpoint(checkpoint.read_text(), topic)
    return all(cleaned.get(number, 0) == _last_segment(data, topic, number) for number in range(partitions))


def parse_checkpoint(text: str, topic: str) -> dict[int, int]:
    """First offset that isn't clean, by partition. Two lines with version and count come first."""
    rows = (line.rsplit(" ", 2) for line in text.splitlines()[2:])
    return {int(partition): int(offset) for name, partition, offset in rows if name == topic}


def _last_segment(data: Path, topic: str, partition: int) -> int:
    """Return the first offset of the last segment, which is its name."""
    (folder,) = data.rglob(f"{topic}-{partition}")
    return max(int(file.stem) for file in folder.glob("*.log"))
