"""The copy loop to a target with 100 ms latency: five full Produce requests are in flight."""

from collections.abc import Iterator
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.ids import TopicPartition
from tests.contract.copying import Bench, remote, running
from tests.contract.network import Network
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import Keyed, append, end_offsets, records
from tests.support.proxy import proxied
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
ONE_WAY_S: Final = 0.05
PATIENCE_S: Final = 30.0
IN_FLIGHT: Final = 5
REQUEST_BYTES: Final = 1 << 20
RECORD_BYTES: Final = 10_000
RECORDS: Final = 2000


@pytest.mark.parametrize(("partitions", "batch_bytes"), [(1, 1_000_000), (8, 128 << 10)])
def test_link_with_high_latency_is_filled(bench: Bench, partitions: int, batch_bytes: int) -> None:
    """Batches smaller than a request fill it too, if there are enough partitions."""
    topic = f"contract.far-{partitions}"
    bench.create(topic, partitions=partitions)
    fill(bench, topic, partitions, batch_bytes)
    copied = [TopicPartition(topic, number) for number in range(partitions)]
    near, far = ((HOST, cluster.brokers[0].port) for cluster in (bench.source, bench.target))
    with proxied(near) as source, proxied(far) as target:
        target[0].delay(to_broker_s=ONE_WAY_S, to_client_s=ONE_WAY_S)
        plan = Network(source, target).plan(bench, *copied, request_timeout_s=PATIENCE_S)
        with running(plan):
            await_value(lambda: written(bench, topic) >= RECORDS, WAIT_S, lambda: f"{written(bench, topic)}")
        figures = target[0].figures
    assert figures.produce_requests_peak == IN_FLIGHT
    assert figures.produce_bytes_peak > 0.85 * IN_FLIGHT * REQUEST_BYTES
    assert list(records_of(bench.target, remote(topic))) == list(records_of(bench.source, topic))


def fill(bench: Bench, topic: str, partitions: int, batch_bytes: int) -> None:
    """Append batches of almost the maximum size."""
    for partition in range(partitions):
        numbers = range(partition, RECORDS, partitions)
        new: list[Keyed] = [(b"%d" % number, b"%0*d" % (RECORD_BYTES, number)) for number in numbers]
        settings = {"batch.size": str(batch_bytes), "linger.ms": "1000"}
        append(bench.source, topic, new, partition=partition, settings=settings)


def written(bench: Bench, topic: str) -> int:
    return sum(end_offsets(bench.target, [remote(topic)]).values())


def records_of(cluster: AnyCluster, topic: str) -> Iterator[tuple[object, ...]]:
    for record in records(cluster, topic):
        yield record.partition(), record.offset(), record.key(), record.value()
