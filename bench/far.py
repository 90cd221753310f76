"""How much of a long way one copy task fills: `python -m bench.far`.

One cluster is near; between the task and the other lies a proxy that delays every byte, half the round trip
each way, and limits nothing else. To a far target, what `max.request.size` and five requests under way allow
is the bound: 5 x 1 MiB in 100 ms are 52 MB/s. A request holds one batch of each partition, so small batches
of few partitions don't fill it. From a far source, a task has one Fetch under way per broker, with up to
`max.partition.fetch.bytes` of each partition. `Load.bound` takes both into account.

A proxy can't show what the window of a TCP connection holds back: brokers' `socket.receive.buffer.bytes`
and `socket.send.buffer.bytes`, and the kernel's `net.ipv4.tcp_wmem`.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka as confluent

from bench.topics import Topics
from sparkmirror.clusters import ClusterSpec, LocalCluster, start_clusters
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.copy_plan import CopyPartition, StatePlan, TaskPlan
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.engine.copy_loop import CopyLoop
from tests.proxy import Address, Figures, Proxy, proxied

IN_FLIGHT = 5
REQUEST_BYTES = 1 << 20
_FETCH_BYTES = 1 << 20
_RECORD_BYTES = 1000
_POLL_S = 0.02
_WARM = 0.1
"""The share of the records that is not measured: connections are made, producer ids proven."""


@dataclass(frozen=True, slots=True)
class Load:
    """`batch_bytes` is `batch.size` of who writes the source."""

    name: str
    partitions: int
    batch_bytes: int
    megabytes: int

    def bound(self, far: str, round_trip_s: float) -> float:
        """Bytes per second that the requests under way can carry."""
        if far == "source":
            return self.partitions * _FETCH_BYTES / round_trip_s
        batch = min(self.batch_bytes, REQUEST_BYTES)
        return IN_FLIGHT * batch * min(self.partitions, REQUEST_BYTES // batch) / round_trip_s


LOADS = (
    Load("1 partition, 1 MB batches", 1, 1_000_000, 200),
    Load("8 partitions, 1 MB batches", 8, 1_000_000, 200),
    Load("8 partitions, 128 KB batches", 8, 128 << 10, 200),
    Load("8 partitions, 16 KB batches", 8, 16 << 10, 40),
    Load("1 partition, 16 KB batches", 1, 16 << 10, 6),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """`start_s` is the time until the first record has come."""

    start_s: float
    bytes_per_s: float
    records_per_s: float
    figures: Figures


def fill(cluster: LocalCluster, topic: str, load: Load) -> int:
    """Batches as large as wanted, of records without a codec; how many records."""
    producer = confluent.Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "batch.size": load.batch_bytes,
            "message.max.bytes": 1_000_000,
            "linger.ms": 1000,
            "queue.buffering.max.messages": 0,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 2,
        }
    )
    count = load.megabytes * 1_000_000 // _RECORD_BYTES // load.partitions * load.partitions
    for number in range(count):
        producer.produce(topic, value=bytes(_RECORD_BYTES), partition=number % load.partitions)
    producer.flush(60)
    return count


def plan(
    connector: str, source: ConnectionSettings, target: ConnectionSettings, topic: str, partitions: int
) -> TaskPlan:
    copied = (CopyPartition(TopicPartition(topic, number), topic) for number in range(partitions))
    return TaskPlan(
        flow=Flow(Alias("source"), Alias("target")),
        connector=ConnectorName(connector),
        task=0,
        generation=0,
        announced_at=0,
        partitions=tuple(copied),
        consumer=ConsumerSettings(source, partition_fetch_bytes_max=_FETCH_BYTES),
        producer=ProducerSettings(target, request_bytes_max=REQUEST_BYTES),
        state=StatePlan(target, "far.positions", "far.progress"),
        offset_syncs=None,
    )


def measure(copied: TaskPlan, ends: Topics, topic: str, count: int, proxy: Proxy) -> Measured:
    """From a tenth of the records to all of them."""
    loop = CopyLoop(copied)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    started = time.monotonic()
    try:
        start_s = _await(ends, topic, len(copied.partitions), 1)[0] - started
        began, first = _await(ends, topic, len(copied.partitions), int(count * _WARM))
        ended, last = _await(ends, topic, len(copied.partitions), count)
    finally:
        loop.stop()
        thread.join()
    rate = (last - first) / (ended - began)
    return Measured(start_s, rate * _RECORD_BYTES, rate, proxy.figures)


def _await(ends: Topics, topic: str, partitions: int, count: int) -> tuple[float, int]:
    while (there := ends.end_offsets(topic, partitions)) < count:
        time.sleep(_POLL_S)
    return time.monotonic(), there


def run(loads: Sequence[Load], far: str, round_trips_s: Sequence[float], folder: Path) -> None:
    specs = [ClusterSpec(name, heap_mb=1024) for name in ("source", "target")]
    source, target = start_clusters([(spec, folder / spec.name) for spec in specs])
    with source, target:
        ends = Topics(target.bootstrap_servers)
        for name in ("far.positions", "far.progress"):
            ends.create(name, 1, {"cleanup.policy": "compact"})
        for load in loads:
            topic = load.name.replace(",", "").replace(" ", "-")
            Topics(source.bootstrap_servers).create(topic, load.partitions)
            count = fill(source, topic, load)
            for round_trip_s in round_trips_s:
                ends.delete_all_but(["far.positions", "far.progress"])
                ends.create(topic, load.partitions)
                with proxied(_address(source)) as (before,), proxied(_address(target)) as (behind,):
                    delayed = before if far == "source" else behind
                    delayed.delay(to_broker_s=round_trip_s / 2, to_client_s=round_trip_s / 2)
                    read, written = (ConnectionSettings((proxy.address,)) for proxy in (before, behind))
                    copied = plan(f"{topic}-{round_trip_s}", read, written, topic, load.partitions)
                    show(load, far, round_trip_s, measure(copied, ends, topic, count, behind))


def _address(cluster: LocalCluster) -> Address:
    return HOST, cluster.brokers[0].port


def show(load: Load, far: str, round_trip_s: float, measured: Measured) -> None:
    bound = load.bound(far, round_trip_s) if round_trip_s else float("inf")
    figures = measured.figures
    print(
        f"{load.name:30} {far} {round_trip_s * 1000:4.0f} ms {measured.records_per_s:8.0f} records/s "
        f"{measured.bytes_per_s / 1e6:7.1f} MB/s of {bound / 1e6:6.1f}; most under way: "
        f"{figures.produce_requests_peak} requests, {figures.produce_bytes_peak / 1e6:.1f} MB; "
        f"first record after {measured.start_s:.1f} s",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trip-ms", type=float, nargs="+", default=[0, 100])
    parser.add_argument("--far", choices=("source", "target"), default="target")
    parser.add_argument("--loads", type=int, nargs="+", choices=range(len(LOADS)), default=range(len(LOADS)))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sparkmirror-far-") as folder:
        run(
            [LOADS[number] for number in options.loads],
            options.far,
            [milliseconds / 1000 for milliseconds in options.round_trip_ms],
            Path(folder),
        )


if __name__ == "__main__":
    main()
