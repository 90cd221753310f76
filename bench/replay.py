"""The ceiling: batches of the source, held in memory, sent to the target as fast as it takes them.

First reads up to `--cache-mb` of the source's batches, then only writes: one batch a partition in each
Produce request, several requests under way on each connection. When the cache is smaller than `--records`,
it starts over. The batches are the source's own bytes; only their base offset is set to 0, as a broker
demands.
"""

import argparse
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle

from bench.wire import Batch, Wire, batches_in
from bench.workloads import PARTITIONS

IN_FLIGHT = 5


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


def write_share(log: Log, cache: dict[int, list[Batch]], records: int) -> int:
    """Send at least `records` on one connection; what was sent."""
    wire, under_way, sent = Wire.connect(log.bootstrap), deque[int](), 0
    for batches in _rounds(cache):
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


def replay(cache: dict[int, list[Batch]], log: Log, records: int, connections: int) -> int:
    """Deal the partitions to `connections`, each a thread; the records sent, at least `records`."""
    shares = [{p: cache[p] for p in list(cache)[index::connections]} for index in range(connections)]
    with ThreadPoolExecutor(connections) as pool:
        sent = pool.map(lambda share: write_share(log, share, -(-records // connections)), shares)
        return sum(sent)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--target-topic", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--cache-mb", type=int, default=1024)
    options = parser.parse_args(arguments)
    source, target = Log(options.source, options.topic), Log(options.target, options.target_topic)
    cache = read_topic(source, options.cache_mb << 20)
    replay(cache, target, options.records, options.connections)


if __name__ == "__main__":
    main()
