"""Measures how much of a link with high latency one copy task fills.

Between the task and one of the clusters lies a proxy that delays every byte, half the round trip each way,
and limits nothing else. To a far target, what `max.request.size` and five requests under way allow is the
bound: 5 x 1 MiB in 100 ms are 52 MB/s. A request holds one batch of each partition, so small batches of few
partitions don't fill it. From a far source, a task has one Fetch under way per broker, with up to
`max.partition.fetch.bytes` of each partition. `Load.bound` takes both into account.

A proxy can't show what the window of a TCP connection holds back: brokers' `socket.receive.buffer.bytes`
and `socket.send.buffer.bytes`, and the kernel's `net.ipv4.tcp_wmem`.
"""

from dataclasses import dataclass
from typing import Literal

import confluent_kafka as confluent

from bench.bed import Bed, Broker
from bench.one_task import copy
from bench.results import FarRun
from bench.workloads import FAR
from sparkmirror.copy.copy_plan import StatePlan, TaskPlan
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.settings.copy_partition import CopyPartition
from tests.support.proxy import Address, proxied

IN_FLIGHT = 5
REQUEST_BYTES = 1 << 20
ROUND_TRIP_S = 0.1
_FETCH_BYTES = 1 << 20
_RECORD_BYTES = 1000
_STATE_TOPICS = ("bench-far-positions", "bench-far-progress")


@dataclass(frozen=True, slots=True)
class Load:
    """`batch_bytes` is `batch.size` of who writes the source; `share` how much of the data is enough."""

    far: Literal["source", "target"]
    partitions: int
    batch_bytes: int
    share: float = 1.0

    @property
    def name(self) -> str:
        partitions = f"{self.partitions} partition{'s' if self.partitions > 1 else ''}"
        return f"{self.far} far, {partitions}, {self.batch_bytes // 1000:,} KB batches"

    @property
    def bound(self) -> float:
        """Bytes per second that the requests under way can carry."""
        if self.far == "source":
            return self.partitions * _FETCH_BYTES / ROUND_TRIP_S
        batch = min(self.batch_bytes, REQUEST_BYTES)
        return IN_FLIGHT * batch * min(self.partitions, REQUEST_BYTES // batch) / ROUND_TRIP_S

    @property
    def fills_requests(self) -> bool:
        """Whether the bound is that of `max.request.size`, and not that of small batches."""
        return self.far == "target" and self.batch_bytes >= 100_000


LOADS = (
    Load("target", 1, 1_000_000),
    Load("target", 8, 1_000_000),
    Load("target", 8, 128_000),
    Load("target", 8, 16_000, 0.2),
    Load("source", 8, 1_000_000),
)


def measure(bed: Bed, load: Load, megabytes: int) -> FarRun:
    """Through a proxy before each cluster, of which one delays."""
    topic = f"bench-far-{LOADS.index(load)}"
    try:
        bed.source.topics.create(topic, load.partitions)
        for name in _STATE_TOPICS:
            bed.target.topics.create(name, 1, {"cleanup.policy": "compact"})
        bed.target.topics.create(topic, load.partitions)
        records = _fill(bed.source, topic, load, megabytes)
        with proxied(_address(bed.source)) as (before,), proxied(_address(bed.target)) as (behind,):
            delayed = before if load.far == "source" else behind
            delayed.delay(to_broker_s=ROUND_TRIP_S / 2, to_client_s=ROUND_TRIP_S / 2)
            read, written = (ConnectionSettings((proxy.address,)) for proxy in (before, behind))
            run = copy(_plan(read, written, topic, load.partitions), bed.target.topics, records)
            peak = behind.figures.produce_requests_peak
    finally:
        bed.clean()
    return FarRun(
        name=load.name,
        fills_requests=load.fills_requests,
        round_trip_s=ROUND_TRIP_S,
        start_s=run.start_s,
        bytes_per_s=run.records_per_s * _RECORD_BYTES,
        bound_bytes_per_s=load.bound,
        requests_under_way=peak,
    )


def _fill(source: Broker, topic: str, load: Load, megabytes: int) -> int:
    """Batches as large as wanted, of records without a codec; how many records."""
    producer = confluent.Producer(
        {
            "bootstrap.servers": source.bootstrap,
            "batch.size": load.batch_bytes,
            "message.max.bytes": 1_000_000,
            "linger.ms": 1000,
            "queue.buffering.max.messages": 0,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 2,
        }
    )
    count = int(load.share * megabytes * 1_000_000) // _RECORD_BYTES // load.partitions * load.partitions
    for number in range(count):
        producer.produce(topic, value=bytes(_RECORD_BYTES), partition=number % load.partitions)
    producer.flush(60)
    return count


def _plan(source: ConnectionSettings, target: ConnectionSettings, topic: str, partitions: int) -> TaskPlan:
    copied = (CopyPartition(TopicPartition(topic, number), topic) for number in range(partitions))
    return TaskPlan(
        flow=Flow(Alias("source"), Alias("target")),
        connector=ConnectorName(FAR),
        task=0,
        job_epoch=0,
        announced_at=0,
        partitions=tuple(copied),
        consumer=ConsumerSettings(source, partition_fetch_bytes_max=_FETCH_BYTES),
        producer=ProducerSettings(target, request_bytes_max=REQUEST_BYTES),
        state=StatePlan(target, *_STATE_TOPICS),
        offset_syncs=None,
    )


def _address(broker: Broker) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)
