"""Controls one of the two clusters of a drill: three brokers with a proxy before each."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import psutil
from kafka import KafkaAdminClient
from kafka import TopicPartition as LibraryPartition

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.support.broker_data import admin, config, configure
from tests.support.client_quotas import set_quotas
from tests.support.connections import connection
from tests.support.freezing import frozen
from tests.support.proxy import Proxy
from tests.support.waiting import await_value

BROKERS: Final = 3
SETTINGS: Final = {
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "3000",
    # Followers without new records fetch five times per second.
    "replica.fetch.wait.max.ms": "200",
    # Where records are old or compacted, brokers forget and clean within seconds.
    "producer.id.expiration.check.interval.ms": "3000",
    "log.cleaner.backoff.ms": "1000",
}
WAIT_S: Final = 400.0
_RESPONSE_TIMEOUT_S: Final = 10.0
_PREFERRED: Final = 0


@dataclass(frozen=True, slots=True)
class Side:
    """`topic` is the one whose records count. Only the mirror connects to the proxies."""

    name: str
    cluster: LocalCluster
    proxies: Sequence[Proxy]
    topic: str
    partitions: int

    @property
    def bootstrap_servers(self) -> str:
        """The proxies' addresses, for the mirror's configuration."""
        return ",".join(f"{host}:{port}" for host, port in (proxy.address for proxy in self.proxies))

    @property
    def connection(self) -> ConnectionSettings:
        return connection(self.cluster)

    # queries

    def leaders(self) -> Mapping[int, int]:
        """Return the leader of each partition of the topic, -1 where there is none."""
        listed = self._listed(self.topic)[self.topic].partitions
        return {number: partition.leader for number, partition in listed.items()}

    def replicas(self) -> Mapping[TopicPartition, Sequence[int]]:
        """Return the replicas of every partition."""
        return {
            TopicPartition(name, number): listed.replicas
            for name, topic in self._listed().items()
            for number, listed in topic.partitions.items()
        }

    def await_in_sync(self) -> None:
        """Wait until all replicas are in sync, so that another broker may be lost."""

        def lagging() -> list[str]:
            return [
                f"{name}-{number}: {listed.isrs} of {listed.replicas}"
                for name, topic in self._listed().items()
                for number, listed in topic.partitions.items()
                if len(listed.isrs) < len(listed.replicas)
            ]

        await_value(lambda: not lagging(), WAIT_S, lambda: f"{self.name}: {lagging()}")

    def leader_of(self, partition: TopicPartition) -> int:
        """-1 where there is none."""
        return int(self._listed(partition.topic)[partition.topic].partitions[partition.partition].leader)

    def in_sync(self, partition: TopicPartition) -> Sequence[int]:
        return list(self._listed(partition.topic)[partition.topic].partitions[partition.partition].isrs)

    def await_nothing_needs(self, broker: int) -> None:
        """Wait until the stopped broker is no in-sync replica of anything."""

        def needing() -> list[str]:
            return [
                f"{name}-{number}"
                for name, topic in self._listed().items()
                for number, listed in topic.partitions.items()
                if broker in listed.isrs
            ]

        await_value(lambda: not needing(), WAIT_S, lambda: f"{self.name}: {needing()}")

    def controller(self) -> int:
        """The node that leads the metadata quorum."""
        with closing(self._library_admin()) as client:
            (topic,) = client.describe_metadata_quorum()["topics"]
        (partition,) = topic["partitions"]
        return int(partition["leader_id"])

    def _library_admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers.split(","))

    def _listed(self, topic: str | None = None) -> Mapping[str, Any]:
        return admin(self.cluster).list_topics(topic, timeout=_RESPONSE_TIMEOUT_S).topics

    # failures

    def await_led_without(self, broker: int) -> None:
        """Wait until other brokers lead the partitions that it led."""
        await_value(
            lambda: not {broker, -1} & set(self.leaders().values()), WAIT_S, lambda: f"{self.leaders()}"
        )

    def start(self, *brokers: int) -> None:
        """Start the stopped brokers; returns when they respond, before their replicas have caught up."""
        for broker in brokers:
            self.cluster.start_broker(broker)

    def start_all_again(self) -> None:
        """Kill the brokers that still run and start all of them."""
        self.cluster.stop(timeout_s=0)
        self.cluster.launch()
        self.cluster.await_answers()

    @contextmanager
    def frozen(self, broker: int) -> Iterator[None]:
        """Freeze the broker during the block: it accepts connections and does not respond."""
        process = self.cluster.brokers[broker].process
        assert process is not None
        with frozen(process.pid):
            yield

    def fill_disk(self, broker: int) -> None:
        """Let no file of this broker grow, so that it ends itself at the next record.

        It limits the size of the process's files, which needs no root: the broker's write fails as on a full
        disk, with EFBIG instead of ENOSPC.
        """
        found = self.cluster.brokers[broker]
        assert found.process is not None
        segments = found.data.glob(f"{self.topic}-*/*.log")
        size = max(segment.stat().st_size for segment in segments)
        process = psutil.Process(found.process.pid)
        _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (size, hard))

    def await_running(self, brokers: int) -> None:
        """Wait until at most this number of brokers run."""
        await_value(
            lambda: len(self.cluster.pids) <= brokers,
            WAIT_S,
            lambda: f"{self.name}: {len(self.cluster.pids)} brokers run, not {brokers}",
        )

    # administration

    def shuffle_leaders(self, rng: random.Random) -> None:
        """Shuffle the replica lists of all topics, internal ones too, and elect the preferred leaders."""
        wanted = {
            partition: rng.sample(sorted(replicas), len(replicas))
            for partition, replicas in sorted(self.replicas().items())
        }
        with closing(self._library_admin()) as client:
            results = client.alter_partition_reassignments(
                {LibraryPartition(*partition): order for partition, order in wanted.items()}
            )
            assert not any(results.values()), f"{results}"
            client.elect_leaders(_PREFERRED, _by_topic(wanted), raise_errors=False)
        leaders = {
            partition.partition: order[0]
            for partition, order in wanted.items()
            if partition.topic == self.topic
        }
        await_value(lambda: self.leaders() == leaders, WAIT_S, lambda: f"{self.leaders()} is not {leaders}")

    def limit(self, bytes_per_s: float | None) -> None:
        """Set the default client quota for reading and writing; None removes it."""
        set_quotas(self.cluster, {"producer_byte_rate": bytes_per_s, "consumer_byte_rate": bytes_per_s})

    def limit_creations(self, partitions_per_s: float | None) -> None:
        """Set the default client quota for partitions that are created or deleted; None removes it."""
        set_quotas(self.cluster, {"controller_mutation_rate": partitions_per_s})

    @contextmanager
    def configured(self, topic: str, name: str, value: str) -> Iterator[None]:
        """The topic has this config during the block, and what it had before afterwards."""
        before = config(self.cluster, topic)[name]
        configure(self.cluster, topic, {name: value})
        yield
        configure(self.cluster, topic, {name: before})

    def await_topics(self, *topics: str) -> None:
        await_value(
            lambda: set(topics) <= self._listed().keys(), WAIT_S, lambda: f"{topics} of {[*self._listed()]}"
        )

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, bytes]:
        """Return the ids of the topics that are there."""
        with suppress(SparkmirrorError):
            return read_metadata(self.connection, topics).topic_ids
        return {}

    def await_others(self, topics: Mapping[str, bytes]) -> None:
        """Wait until there are topics of these names, and other ids."""

        def are_others() -> bool:
            ids = self.topic_ids(topics)
            return all(ids.get(name, topic_id) != topic_id for name, topic_id in topics.items())

        await_value(are_others, WAIT_S, lambda: f"{[*topics]} were not created again")

    def require_in_sync(self, replicas: int) -> None:
        """Set `min.insync.replicas` of the topic."""
        configure(self.cluster, self.topic, {"min.insync.replicas": str(replicas)})


def _by_topic(partitions: Mapping[TopicPartition, object]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found
