"""Draws faults, and makes them: of requests, brokers, logs, topics and tasks."""

import random
from collections.abc import Callable, Iterator
from typing import Final

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import OnBadBatch
from tests.memory.checked_flow import POSITIONS, CheckedFlow
from tests.memory.cluster import MemoryCluster
from tests.memory.drill.tasks import Tasks
from tests.memory.drill.traffic import Traffic
from tests.memory.network import Fate
from tests.memory.stage import REMOTE, TOPIC, Stage

FOLLOWERS_BEHIND_S: Final = 30.0
"""`replica.lag.time.max.ms`: brokers continue without followers that are slower."""

FAULTS_MAX: Final = 8

Fault = Callable[[], str]
"""Returns what it did."""


class DrawnFates:
    """Decides which single requests go wrong, and at what rate."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self._rng = rng
        self.rate = rate

    def fate(self, _api_key: int, /) -> Fate:
        if self._rng.random() >= self.rate:
            return Fate.WELL
        return self._rng.choice([Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.RESPONSE_LOST, Fate.SILENCE])


class Faults:
    """The faults of one run; `drawn` has those that fit its stage."""

    def __init__(self, stage: Stage, tasks: Tasks, traffic: list[Traffic], rng: random.Random) -> None:
        self._stage = stage
        self._tasks = tasks
        self._traffic = traffic
        self._rng = rng

    def drawn(self) -> Iterator[Fault]:
        kinds = list(self._kinds())
        for _ in range(self._rng.randint(0, FAULTS_MAX)):
            yield self._rng.choice(kinds)

    def _kinds(self) -> Iterator[Fault]:
        shape = self._stage.shape
        yield from (self._move_leader, self._move_leader, self._restart_broker, self._disconnect)
        yield from (self._hold_followers, self._crash, self._move_coordinator, self._forget_producers)
        yield from (self._start_twice, self._freeze, self._freeze_alone, self._throttle)
        yield from (self._cut_off_broker, self._lead_elsewhere, self._lose_progress)
        if shape.is_two_way:
            yield self._crash
        if shape.is_fenced and not shape.is_transactional:
            # Else nothing but positions tells what was copied.
            yield self._lose_positions
        if shape.is_lossy:
            yield from (self._lose_records, self._truncate, self._replace_topic, self._delete_copy)
        if shape.is_compacted and not shape.preserves_offsets:
            # An attempt that was given up may have in flight what the next one takes for a gap.
            yield self._compact
        if shape.bad is not None and shape.on_bad_batch is OnBadBatch.FAIL:
            yield self._refuse_all

    def _flow(self) -> CheckedFlow:
        return self._rng.choice(self._stage.flows)

    def _cluster(self) -> MemoryCluster:
        return self._rng.choice([self._stage.source, self._stage.target, self._stage.target])

    def _any_partition(self, cluster: MemoryCluster) -> TopicPartition:
        return self._rng.choice([partition for partition, _ in cluster.logs()])

    def _later(self, most_s: float, call: Callable[[], object]) -> None:
        self._stage.time.call_later(self._rng.uniform(0.05, most_s), call)

    # clusters

    def _move_leader(self) -> str:
        cluster = self._cluster()
        partition = self._any_partition(cluster)
        cluster.move_leader(partition)
        return f"{cluster.name}: {partition} moved"

    def _restart_broker(self) -> str:
        cluster = self._cluster()
        broker = self._rng.choice(cluster.brokers)
        if not broker.is_up:
            return "nothing"
        cluster.stop(broker)
        self._stage.network.disconnect(broker)
        self._later(8.0, lambda: None if broker.is_up else cluster.restart(broker))
        return f"{cluster.name}: broker {broker.node_id} restarts"

    def _cut_off_broker(self) -> str:
        """Cut off a listener, which can't be reached while it leads what it led."""
        cluster, network = self._cluster(), self._stage.network
        broker = self._rng.choice(cluster.brokers)
        network.unreachable.add(broker)
        network.disconnect(broker)
        self._later(15.0, lambda: network.unreachable.discard(broker))
        return f"{cluster.name}: broker {broker.node_id} can't be reached"

    def _lead_elsewhere(self) -> str:
        """A name leads to another cluster, of which nothing may be read, and to which nothing written."""
        cluster = self._cluster()
        self._stage.lead_elsewhere(cluster)
        self._later(10.0, lambda: self._stage.lead_back(cluster))
        return f"{cluster.name}: another cluster answers at its addresses"

    def _disconnect(self) -> str:
        self._stage.network.disconnect()
        return "all connections end"

    def _hold_followers(self) -> str:
        cluster = self._flow().ends.target
        partition = self._any_partition(cluster)
        log = cluster.log(partition)
        log.hold()

        def release() -> None:
            log.release()
            cluster.changed()

        self._later(FOLLOWERS_BEHIND_S, release)
        return f"{cluster.name}: followers of {partition} fall behind"

    def _throttle(self) -> str:
        """Throttle by quotas for writing, reading or all requests, which come and go."""
        cluster = self._cluster()
        rate = self._rng.uniform(1_000.0, 20_000.0)
        producer, consumer = self._rng.choice([(rate, None), (None, rate), (rate, rate)])
        cluster.quotas.set(producer=producer, consumer=consumer)
        cluster.quotas.requests_s = self._rng.choice([0.0, 0.0, 1.0])

        def end() -> None:
            cluster.quotas.set()
            cluster.quotas.requests_s = 0.0

        self._later(20.0, end)
        return f"{cluster.name} throttles"

    def _move_coordinator(self) -> str:
        cluster = self._flow().ends.target
        cluster.coordinator_shift += 1
        return f"{cluster.name}: coordinators move"

    def _forget_producers(self) -> str:
        flow = self._flow()
        partition = self._rng.choice(flow.partitions)
        flow.target_log(partition).producers.reload(flow.ends.target.now_ms())
        return f"{flow.ends.flow}, {partition}: the leader remembers one batch of each producer"

    # tasks

    def _crash(self) -> str:
        flow = self._flow()
        self._tasks.kill(flow, self._tasks.newest(flow))
        if self._rng.random() < 0.5:
            self._stage.network.disconnect()
        self._tasks.start(flow)
        return f"the task of {flow.ends.flow} is killed and starts again"

    def _start_twice(self) -> str:
        """A task that was given up lives on for a while beside its successor."""
        flow = self._flow()
        old = self._tasks.newest(flow)
        self._tasks.start(flow)
        self._later(10.0, lambda: self._tasks.kill(flow, old))
        return f"the task of {flow.ends.flow} is started again while it runs"

    def _freeze(self) -> str:
        """Freeze a task longer than any time-out, as SIGSTOP does; it wakes beside its successor."""
        flow = self._flow()
        old = self._tasks.newest(flow)
        old.freeze()
        if self._rng.random() < 0.5:
            self._stage.network.disconnect()
        self._later(5.0, lambda: self._tasks.start(flow))
        self._later(40.0, old.thaw)
        self._stage.time.call_later(45.0, lambda: self._tasks.kill(flow, old))
        return f"the task of {flow.ends.flow} is frozen, and another one starts"

    def _freeze_alone(self) -> str:
        """Nobody notices, and no other task is started."""
        flow = self._flow()
        task = self._tasks.newest(flow)
        task.freeze()
        self._stage.time.call_later(60.0, task.thaw)
        return f"the task of {flow.ends.flow} is frozen for a minute"

    # topics and logs

    def _lose_progress(self) -> str:
        """The driver creates the topic again, and lets its tasks write what they know."""
        flow = self._flow()
        return self._lose(flow, flow.progress_topic)

    def _lose_positions(self) -> str:
        """A task that dies before they are written again takes what it knows with it."""
        return self._lose(self._flow(), POSITIONS)

    def _lose(self, flow: CheckedFlow, topic: str) -> str:
        flow.lose(topic)

        def found() -> None:
            flow.create_own_topics()
            self._tasks.forget_stored(flow)

        self._later(3.0, found)
        return f"{flow.ends.flow}: {topic} is deleted"

    def _delete_copy(self) -> str:
        """The driver creates it again at its next refresh."""
        stage = self._stage
        stage.delete_topic(stage.target, REMOTE)
        self._later(5.0, lambda: stage.replace_topic(stage.target, REMOTE))
        return f"{stage.target.name}: {REMOTE} is deleted"

    def _compact(self) -> str:
        return self._rng.choice(self._traffic).compact()

    def _refuse_all(self) -> str:
        """Until the limit is as it was."""
        self._stage.target_config["max.message.bytes"] = "10"
        self._later(15.0, self._stage.restore_target_config)
        return "the target refuses every batch"

    def _lose_records(self) -> str:
        flow = self._flow()
        partition = self._rng.choice(flow.partitions)
        log = flow.records.log(partition)
        log.delete_before(self._rng.randint(log.start, log.end))
        return f"retention removes what is before offset {log.start} of partition {partition}"

    def _truncate(self) -> str:
        """Truncate a log of the source.

        Invariant 1 (nothing is there twice) does not hold yet for a target that lost what it had
        acknowledged, is written on, and whose task then dies before it stores a position. See
        `test_known_gaps`.
        """
        flow = self._flow()
        partition = self._rng.choice(flow.partitions)
        log = flow.records.log(partition)
        flow.records.truncate(partition, self._rng.randint(max(log.start, log.end - 5), log.end))
        return f"partition {partition} of the source has a leader that has it up to offset {log.end} only"

    def _replace_topic(self) -> str:
        stage = self._stage
        cluster, topic = self._rng.choice([(stage.source, TOPIC), (stage.target, REMOTE)])
        stage.replace_topic(cluster, topic)
        return f"{cluster.name}: {topic} is deleted and created again"
