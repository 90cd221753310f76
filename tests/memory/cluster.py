"""An Apache Kafka cluster in memory: its topics and brokers, and what an operator or a fault does to them.

Every broker takes requests as bytes and answers with bytes (`requests`). All of them share one state: what
followers and the controller do is not simulated, only what clients see of it.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from sparkmirror.domain.ids import TopicPartition
from tests.memory.fetch_sessions import FetchSessions
from tests.memory.groups import Groups
from tests.memory.partition_log import PartitionLog, Stored
from tests.memory.quotas import Quotas
from tests.memory.requests import Exchange, answer
from tests.memory.transactions import TransactionCoordinators

HOST: Final = "memory"
_FIRST_PRODUCER_ID: Final = 1000


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """A clock and its timers: virtual time, or a real event loop."""

    def time(self) -> float: ...

    def call_later(self, delay_s: float, call: Callable[..., object], *args: Any) -> Cancellable: ...


class MemoryTopic:
    def __init__(self, name: str, topic_id: uuid.UUID, partitions: int, config: Mapping[str, str]) -> None:
        self.name = name
        self.id = topic_id
        self.config = dict(config)
        self.partitions = [PartitionLog(self.config) for _ in range(partitions)]


class MemoryBroker:
    """An `Endpoint` of the network. Sessions are lost when it stops; its logs are not."""

    def __init__(self, cluster: "MemoryCluster", node_id: int, host: str, port: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.host = host
        self.port = port
        self.is_up = True
        self.sessions = FetchSessions()

    def receive(self, request: bytes, respond: Callable[[bytes, float], None]) -> None:
        answer(Exchange(self, request, respond))


class MemoryCluster:
    """Made with its brokers; the test adds topics."""

    def __init__(
        self, scheduler: Scheduler, name: str = HOST, *, brokers: int = 1, rng: random.Random | None = None
    ) -> None:
        self.name = name
        self.scheduler = scheduler
        self.rng = rng or random.Random(0)
        self._wall_offset_s = time.time() - scheduler.time()
        self.topics: dict[str, MemoryTopic] = {}
        self._created = 0
        self.brokers = [MemoryBroker(self, at, f"{name}-{at}", 9092) for at in range(brokers)]
        self.transaction_version = 2
        self.unreadable: set[str] = set()
        """Topics that nobody has the right to read."""
        self.transactions = TransactionCoordinators(self)
        self.groups = Groups(self)
        self.coordinator_shift = 0
        """Changed by a test to move groups and transactional ids to other brokers."""
        self.quotas = Quotas(scheduler)
        self._next_producer_id = _FIRST_PRODUCER_ID
        self.observers: list[Callable[[TopicPartition, Stored], None]] = []
        """Called with each batch that a client appended."""
        self._waiting: dict[Callable[[], bool], Cancellable] = {}

    def now_ms(self) -> int:
        return int((self._wall_offset_s + self.scheduler.time()) * 1000)

    # topics

    def create(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> MemoryTopic:
        """Leaders are spread over the brokers."""
        self._created += 1
        topic_id = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name} {self._created}")
        topic = self.topics[name] = MemoryTopic(name, topic_id, partitions, config or {})
        for at, log in enumerate(topic.partitions):
            self._place(log, at)
        return topic

    def _place(self, log: PartitionLog, at: int) -> None:
        log.leader = self.brokers[at % len(self.brokers)].node_id
        log.replicas = log.in_sync = len(self.brokers)

    def grow(self, topic: MemoryTopic, partitions: int) -> None:
        for at in range(len(topic.partitions), partitions):
            log = PartitionLog(topic.config)
            self._place(log, at)
            topic.partitions.append(log)

    def delete(self, name: str) -> None:
        del self.topics[name]
        self.changed()

    def log(self, partition: TopicPartition) -> PartitionLog:
        return self.topics[partition.topic].partitions[partition.partition]

    def logs(self) -> Iterator[tuple[TopicPartition, PartitionLog]]:
        for topic in self.topics.values():
            for at, log in enumerate(topic.partitions):
                yield TopicPartition(topic.name, at), log

    def topic_by_id(self, topic_id: uuid.UUID | None) -> MemoryTopic | None:
        return next((topic for topic in self.topics.values() if topic.id == topic_id), None)

    def new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id

    # brokers

    @property
    def live(self) -> list[MemoryBroker]:
        return [broker for broker in self.brokers if broker.is_up]

    def broker(self, node_id: int) -> MemoryBroker:
        return self.brokers[node_id]

    def coordinator(self, key: str) -> MemoryBroker | None:
        """The broker that coordinates a group or transactional id."""
        live = self.live
        return live[(sum(key.encode()) + self.coordinator_shift) % len(live)] if live else None

    def move_leader(self, partition: TopicPartition) -> None:
        """Move a leader to another broker that is up, or to the same in another epoch."""
        log = self.log(partition)
        others = [broker.node_id for broker in self.live if broker.node_id != log.leader]
        log.lead(self.rng.choice(others) if others else log.leader)
        self.changed()

    def stop(self, broker: MemoryBroker) -> None:
        """Stop a broker: its partitions move to others, or wait for it. The network ends the connections."""
        broker.is_up = False
        for _, log in self.logs():
            if log.leader == broker.node_id:
                log.lead(self.rng.choice(self.live).node_id if self.live else None)
        self.changed()

    def restart(self, broker: MemoryBroker) -> None:
        """Restart a broker: it remembers one batch of each producer for partitions that waited for it."""
        broker.is_up = True
        broker.sessions = FetchSessions()
        for _, log in self.logs():
            if log.leader is None:
                log.producers.reload(self.now_ms())
                log.lead(broker.node_id)
        self.changed()

    # what requests wait for

    def wait(
        self, try_to_end: Callable[[], bool], timeout_s: float, at_timeout: Callable[[], object]
    ) -> None:
        """Call the first whenever something changes, until it returns True; the second when it's late."""

        def late() -> None:
            if self._waiting.pop(try_to_end, None) is not None:
                at_timeout()

        self._waiting[try_to_end] = self.scheduler.call_later(timeout_s, late)

    def changed(self) -> None:
        for try_to_end in list(self._waiting):
            if try_to_end in self._waiting and try_to_end():
                timer = self._waiting.pop(try_to_end, None)
                if timer is not None:
                    timer.cancel()
