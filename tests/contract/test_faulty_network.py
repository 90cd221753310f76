"""The copy loop over a faulty network: each record arrives once and in order."""

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

import confluent_kafka as confluent
import pytest
from confluent_kafka.admin import NewTopic

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.ids import TopicPartition
from tests.contract.copying import Bench, remote, running, store, stored
from tests.contract.network import Network
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import admin, append, end_offsets, numbered
from tests.support.proxy import Api, Disruption, Moment, Proxy, proxied
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
"""Limits every wait in these tests."""

UNCLEAR_RESULTS: Final = 25
SEED: Final = 20260101


@pytest.fixture(scope="module")
def network(bench: Bench) -> Iterator[Network]:
    brokers = [(HOST, cluster.brokers[0].port) for cluster in (bench.source, bench.target)]
    with proxied(brokers[0]) as source, proxied(brokers[1]) as target:
        yield Network(source, target)


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions."""
    name = "contract." + re.sub(r"\W+", "-", request.node.name)
    bench.create(name, partitions=2)
    return name


class Writer:
    """Writes thousands of numbered records per second into each partition, in small batches."""

    def __init__(self, cluster: AnyCluster, partitions: Sequence[TopicPartition]) -> None:
        self.counts = Counter(dict.fromkeys(partitions, 0))
        self._producer = confluent.Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1, "log_level": 0}
        )
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        while not self._enough.wait(0.005):
            for (topic, partition), count in self.counts.items():
                for key, value in numbered(10, count):
                    self._producer.produce(topic, key=key, value=value, partition=partition)
                self.counts[TopicPartition(topic, partition)] += 10
            self._producer.poll(0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0

    def await_more(self, count: int) -> None:
        """Wait for this number of further records in every partition."""
        before = dict(self.counts)
        await_value(
            lambda: all(self.counts[partition] >= had + count for partition, had in before.items()),
            WAIT_S,
            lambda: f"{self.counts}",
        )


def await_traffic(network: Network, count: int = 10) -> None:
    """Wait for this number of further Fetch and Produce responses."""
    for (proxy,), api in ((network.source, Api.FETCH), (network.target, Api.PRODUCE)):
        before = proxy.figures.answers[api]
        proxy.await_figures(lambda figures: figures.answers[api] >= before + count, WAIT_S)  # noqa: B023


def both_partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(2)]


def assert_copied(bench: Bench, writer: Writer) -> None:
    for (topic, partition), count in writer.counts.items():
        assert bench.copied(topic, partition) == numbered(count)


@contextmanager
def copying_while_written(bench: Bench, network: Network, topic: str) -> Iterator[Writer]:
    """Run a copy task and a writer. At the end every record must be at the target once and in order."""
    with running(network.plan(bench, *both_partitions(topic))):
        with Writer(bench.source, both_partitions(topic)) as writer:
            await_traffic(network)
            yield writer
        for (_, partition), count in writer.counts.items():
            bench.await_copied(topic, numbered(count), partition=partition)
    network.await_disconnected()
    assert_copied(bench, writer)


# network faults during the copy

Fault = Callable[[Proxy, Writer], None]


def delays(proxy: Proxy, writer: Writer) -> None:
    proxy.delay(to_broker_s=0.03, to_client_s=0.05)
    writer.await_more(500)


def is_narrow(proxy: Proxy, writer: Writer) -> None:
    proxy.throttle(to_broker=50_000, to_client=50_000)
    writer.await_more(500)


def resets(proxy: Proxy, _: Writer) -> None:
    proxy.cut(Disruption.RESET)


def ends_connections(proxy: Proxy, _: Writer) -> None:
    proxy.cut(Disruption.END)


def half_closes(proxy: Proxy, _: Writer) -> None:
    proxy.half_close()


def stalls(proxy: Proxy, writer: Writer) -> None:
    """Stop responding for less time than any request timeout."""
    proxy.silence()
    writer.await_more(200)


def falls_silent(proxy: Proxy, _: Writer) -> None:
    """Stop responding until clients reconnect; the held requests are delivered afterwards."""
    opened = proxy.figures.opened
    proxy.silence()
    proxy.await_figures(lambda figures: figures.opened >= opened + 2)


def refuses(proxy: Proxy, writer: Writer) -> None:
    proxy.refuse()
    proxy.cut(Disruption.RESET)
    writer.await_more(500)


def moves(proxy: Proxy, _: Writer) -> None:
    """Give the broker another address."""
    proxy.move()


FAULTS: Final[Sequence[Fault]] = (
    delays,
    is_narrow,
    resets,
    ends_connections,
    half_closes,
    stalls,
    falls_silent,
    refuses,
)


@pytest.mark.parametrize("side", ["source", "target"])
def test_every_record_arrives_once_under_network_faults(
    bench: Bench, network: Network, topic: str, side: str
) -> None:
    (proxy,) = getattr(network, side)
    with copying_while_written(bench, network, topic) as writer:
        for fault in FAULTS:
            fault(proxy, writer)
            proxy.restore()
            await_traffic(network)


def test_batch_is_written_once_after_a_lost_response(bench: Bench, network: Network, topic: str) -> None:
    """The connection ends after half of the request, all of it, none or half of the response."""
    chance = random.Random(SEED)
    (target,) = network.target
    with copying_while_written(bench, network, topic):
        for _ in range(UNCLEAR_RESULTS):
            before = target.figures.disruptions
            moment, disruption = (
                chance.choice(list(Moment)),
                chance.choice([Disruption.RESET, Disruption.END]),
            )
            target.disrupt_next(Api.PRODUCE, moment, disruption, after=chance.randrange(8))
            await_disruptions(target, before + 1)


def test_response_out_of_order_ends_its_connection_and_no_partition(
    bench: Bench, network: Network, topic: str
) -> None:
    """The batches of the missing response are resent."""
    (target,) = network.target
    with copying_while_written(bench, network, topic):
        for _ in range(3):
            before = target.figures.disruptions
            target.disrupt_next(Api.PRODUCE, Moment.ANSWER_DUE, Disruption.SWALLOW, after=2)
            await_disruptions(target, before + 1)
            await_traffic(network, 20)


def test_a_request_that_arrives_after_its_resend_adds_nothing(
    bench: Bench, network: Network, topic: str
) -> None:
    """The client has closed its connection and resent its batches on another one."""
    (target,) = network.target
    with copying_while_written(bench, network, topic):
        for more in (1, 20):
            before = target.figures
            target.disrupt_next(Api.PRODUCE, Moment.REQUEST_HALF_SENT, Disruption.HOLD, after=5)
            await_disruptions(target, before.disruptions + 1)
            opened = target.figures.opened
            target.await_figures(lambda figures: figures.opened > opened)  # noqa: B023
            await_traffic(network, more)
            target.restore()
            await_traffic(network)


def test_start_continues_after_lost_responses(bench: Bench, network: Network, topic: str) -> None:
    """A first start, and one with a read-back, lose the response of every kind of request."""
    chance = random.Random(SEED)
    (source,), (target,) = network.source, network.target
    first = [(source, Api.LIST_OFFSETS), (target, Api.INIT_PRODUCER_ID), (target, Api.PRODUCE)]
    bench.source_has(topic, 50)
    copy_with_lost_responses(network, bench, topic, 50, first, chance)
    known = stored(bench, topic)
    for at in range(50, 80):  # one batch each
        append(bench.source, topic, numbered(1, at))
    copy_with_lost_responses(network, bench, topic, 80, [], chance)
    store(bench, topic, known)
    bench.source_has(topic, 20)
    again = [(source, Api.FETCH), (source, Api.METADATA), (target, Api.LIST_OFFSETS), (target, Api.FETCH)]
    copy_with_lost_responses(network, bench, topic, 100, again, chance)


def copy_with_lost_responses(
    network: Network,
    bench: Bench,
    topic: str,
    count: int,
    lost: Sequence[tuple[Proxy, Api]],
    chance: random.Random,
) -> None:
    """Start, copy and stop, while the responses to these requests are lost."""
    before = Counter({proxy: proxy.figures.disruptions for proxy, _ in lost})
    for proxy, api in lost:
        moment = chance.choice([Moment.ANSWER_DUE, Moment.ANSWER_HALF_SENT])
        proxy.disrupt_next(api, moment, chance.choice([Disruption.RESET, Disruption.END]))
        before[proxy] += 1
    with running(network.plan(bench, TopicPartition(topic, 0))):
        bench.await_copied(topic, numbered(count))
        for proxy, disruptions in before.items():
            await_disruptions(proxy, disruptions)
    network.await_disconnected()
    assert bench.copied(topic) == numbered(count)


def await_disruptions(proxy: Proxy, count: int) -> None:
    proxy.await_figures(lambda figures: figures.disruptions >= count, WAIT_S)


@pytest.fixture
def three_brokers(trio: LocalCluster) -> Bench:
    """Three brokers that are source and target."""
    made = Bench(trio, trio)
    made.create_state_topics()
    return made


def test_partitions_of_reachable_brokers_continue(three_brokers: Bench) -> None:
    """One of three leaders is unreachable, at the source or the target; the other two are not delayed."""
    topic = "contract.others"
    for name in (topic, remote(topic)):
        create_assigned(three_brokers.source, name, [[0], [1], [2]])
    partitions = [TopicPartition(topic, number) for number in range(3)]
    brokers = [(HOST, broker.port) for broker in three_brokers.source.brokers]
    with proxied(*brokers) as source, proxied(*brokers) as target:
        network = Network(source, target)
        with running(network.plan(three_brokers, *partitions)):
            with Writer(three_brokers.source, partitions) as writer:
                writer.await_more(50)
                for fault, side, number in (
                    (falls_silent, target, 1),
                    (refuses, source, 0),
                    (moves, target, 2),
                    (moves, source, 1),
                ):
                    await_copies(three_brokers, partitions, writer)
                    fault(side[number], writer)
                    others = [partition for partition in partitions if partition.partition != number]
                    await_copies(three_brokers, others, writer)
                    side[number].restore()
            for partition, count in writer.counts.items():
                three_brokers.await_copied(topic, numbered(count), partition=partition.partition)
        network.await_disconnected()
    assert_copied(three_brokers, writer)


def await_copies(bench: Bench, partitions: Sequence[TopicPartition], writer: Writer) -> None:
    """Wait for as many records as the source has now."""
    wanted = {
        TopicPartition(remote(partition.topic), partition.partition): writer.counts[partition]
        for partition in partitions
    }

    def arrived() -> bool:
        ends = end_offsets(bench.target, {partition.topic for partition in wanted})
        return all(ends[partition] >= count for partition, count in wanted.items())

    await_value(arrived, WAIT_S, lambda: f"not there: {wanted}")


def create_assigned(cluster: AnyCluster, topic: str, assignment: list[list[int]]) -> None:
    client = admin(cluster)  # a closed client would cancel the request
    new_topic = NewTopic(topic, num_partitions=len(assignment), replica_assignment=assignment)
    (future,) = client.create_topics([new_topic]).values()
    future.result(WAIT_S)
