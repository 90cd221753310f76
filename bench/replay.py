"""The ceiling: batches of the source, held in memory, sent to the target as fast as it takes them.

First reads up to `--cache-mb` of the source's batches, then only writes: one batch a partition in each
Produce request, several requests under way on each connection. When the cache is smaller than `--records`,
it starts over. The batches are the source's own bytes; only their base offset is set to 0, as a broker
demands.

With `--read`, the ceiling that reads: every batch is fetched from the source too, and dropped, shortly before
its copy from memory is sent. That is the least that any mirror has to do.
"""

import argparse
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from threading import Semaphore, Thread

from bench.wire import Batch, Wire, batches_in
from bench.workloads import PARTITIONS

IN_FLIGHT = 5
FETCH_BYTES = 1 << 20
"""The default of a mirror's `max.partition.fetch.bytes`."""
_READ_AHEAD = 64


@dataclass(frozen=True, slots=True)
class Log:
    """A topic on a cluster."""

    bootstrap: str
    topic: str


def read_partition(log: Log, partition: int, bytes_max: int) -> list[Batch]:
    """Batches from the partition's start: about `bytes_max` of them, or up to its end."""
    wire, batches, size, offset, end = Wire.connect(log.bootstrap), list[Batch](), 0, 0, 1
    while size < bytes_max and offset < end:
        fetched = wire.fetch(log.topic, partition, offset)
        batches += batches_in(fetched.records)
        size += len(fetched.records)
        offset, end = batches[-1].next_offset if batches else end, fetched.high_watermark
    wire.close()
    return batches


def read_topic(log: Log, bytes_max: int) -> dict[int, list[Batch]]:
    """About `bytes_max` of the topic's batches, by partition."""
    return {
        partition: read_partition(log, partition, bytes_max // PARTITIONS) for partition in range(PARTITIONS)
    }


class Dropped:
    """Reads partitions of a topic in a thread, round and round, and drops what arrives."""

    def __init__(self, log: Log, partitions: Collection[int]) -> None:
        self._log = log
        self._partitions = partitions
        self._room = Semaphore(_READ_AHEAD)
        self._there = Semaphore(0)
        Thread(target=self._read, daemon=True).start()

    def await_batches(self, count: int) -> None:
        """Wait until as many more have arrived."""
        for _ in range(count):
            self._there.acquire()
            self._room.release()

    def _read(self) -> None:
        wire, buffer = Wire.connect(self._log.bootstrap), bytearray(2 * FETCH_BYTES)
        offsets = dict.fromkeys(self._partitions, 0)
        while True:
            for partition, offset in offsets.items():
                ends = wire.fetch_and_drop(self._log.topic, partition, offset, FETCH_BYTES, buffer)
                offsets[partition] = ends[-1] if ends else 0
                for _ in ends:
                    self._room.acquire()
                    self._there.release()


def write_share(log: Log, cache: dict[int, list[Batch]], records: int, dropped: Dropped | None) -> int:
    """Send at least `records` on one connection; what was sent."""
    wire, under_way, sent = Wire.connect(log.bootstrap), deque[int](), 0
    for batches in _rounds(cache):
        if dropped is not None:
            dropped.await_batches(len(batches))
        wire.send_produce(log.topic, {partition: batch.data for partition, batch in batches.items()})
        under_way.append(sum(batch.records for batch in batches.values()))
        sent += under_way[-1]
        while len(under_way) >= IN_FLIGHT or (under_way and sent >= records):
            wire.await_produced()
            under_way.popleft()
        if sent >= records:
            break
    wire.close()
    return sent


def _rounds(cache: dict[int, list[Batch]]) -> Iterator[dict[int, Batch]]:
    """One batch of each partition at a time, for ever."""
    for batches in zip(*(cycle(partition) for partition in cache.values()), strict=True):
        yield dict(zip(cache, batches, strict=True))


def replay(
    cache: dict[int, list[Batch]], log: Log, records: int, connections: int, read: Log | None = None
) -> int:
    """Deal the partitions to `connections`, each a thread; the records sent, at least `records`."""
    shares = [{p: cache[p] for p in list(cache)[index::connections]} for index in range(connections)]

    def write(share: dict[int, list[Batch]]) -> int:
        dropped = None if read is None else Dropped(read, share)
        return write_share(log, share, -(-records // connections), dropped)

    with ThreadPoolExecutor(connections) as pool:
        return sum(pool.map(write, shares))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--target-topic", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--cache-mb", type=int, default=1024)
    parser.add_argument("--read", action="store_true")
    options = parser.parse_args(arguments)
    source, target = Log(options.source, options.topic), Log(options.target, options.target_topic)
    cache = read_topic(source, options.cache_mb << 20)
    replay(cache, target, options.records, options.connections, source if options.read else None)


if __name__ == "__main__":
    main()
