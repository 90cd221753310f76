"""Faults of brokers and their disks, and changes of topics. They begin when every replica is in sync."""

import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack

from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from tests.faults.fault import LONGER_THAN_REQUESTS, SHORT, Area, Need, fault
from tests.faults.numbered import FRAIL, NUMBERED, NUMBERED_PARTITIONS
from tests.faults.side import BROKERS, Side
from tests.faults.spark_processes import kill_all
from tests.faults.testbed import ALIAS, TOPIC, DrillTestbed, delete, remote
from tests.faults.unclean import elect_unclean


@fault(Area.BROKERS, SHORT)
def kill_broker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    side, broker = rng.choice(testbed.sides), rng.randrange(BROKERS)
    side.cluster.kill_broker(broker)
    side.await_led_without(broker)
    yield
    side.start(broker)


@fault(Area.BROKERS, SHORT)
def kill_controller(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    side = rng.choice(testbed.sides)
    controller = side.controller()
    side.cluster.kill_broker(controller)
    side.await_led_without(controller)
    yield
    side.start(controller)


@fault(Area.BROKERS)
def roll(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Every broker of a cluster in turn, in order."""
    side = rng.choice(testbed.sides)
    for broker in rng.sample(range(BROKERS), BROKERS):
        side.await_in_sync()
        side.cluster.stop_broker(broker, timeout_s=30)
        side.start(broker)
    yield


@fault(Area.BROKERS, LONGER_THAN_REQUESTS, delays=True)
def freeze_broker(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Freeze a broker: it accepts connections and never responds; others take over, and then it continues."""
    side, broker = rng.choice(testbed.sides), rng.randrange(BROKERS)
    with side.frozen(broker):
        yield


@fault(Area.BROKERS, (0.5, 2.0), need=Need.WRITES, delays=True)
def hang_follower(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """High watermarks stand still for less than a broker's session, while workers die and begin again."""
    workers = testbed.workers().workers
    with testbed.target.frozen(rng.randrange(BROKERS)):
        kill_all(workers)
        yield


@fault(Area.BROKERS, SHORT)
def remove_logs(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Remove logs from one broker's disk: it comes back without them, and others have the records."""
    side, broker = rng.choice(testbed.sides), rng.randrange(BROKERS)
    side.cluster.kill_broker(broker)
    side.await_nothing_needs(broker)
    logs = sorted(side.cluster.brokers[broker].data.glob("[!_]*-[0-9]*"))
    for log in rng.sample(logs, len(logs) // 2):
        shutil.rmtree(log)
    yield
    side.start(broker)


@fault(Area.BROKERS, need=Need.ALONE)
def elect_unclean_leader(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Elect a leader of the source or target that lacks the last records. Workers are killed or not."""
    side = rng.choice(testbed.sides)
    copied = TopicPartition(FRAIL, rng.randrange(NUMBERED_PARTITIONS))
    partition = copied if side is testbed.source else copied._replace(topic=remote(FRAIL))
    kill = rng.choice([(), testbed.workers().workers])
    testbed.elections.append(elect_unclean(side, partition, copied, lambda: kill_all(kill)))
    yield


@fault(Area.BROKERS, SHORT)
def change_configs(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Change configs of mirrored topics, on either side, while they are copied."""
    with ExitStack() as changed:
        for topic in (TOPIC, *NUMBERED):
            side = rng.choice(testbed.sides)
            choices = [
                ("compression.type", "gzip"),
                ("compression.type", "zstd"),
                ("retention.ms", "500000000"),
            ]
            if topic != TOPIC:  # whose time stamps are compared
                choices.append(("message.timestamp.type", "LogAppendTime"))
            if side is testbed.target:  # the source's producers must not be refused
                choices.append(("max.message.bytes", str(rng.choice([300, 1000, 5000]))))
            name, value = rng.choice(choices)
            changed.enter_context(
                side.configured(topic if side is testbed.source else remote(topic), name, value)
            )
        yield


@fault(Area.BROKERS)
def shuffle_leaders(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    for side in rng.sample(testbed.sides, 2):
        side.shuffle_leaders(rng)
    yield


@fault(Area.BROKERS, SHORT, need=Need.WRITES)
def lack_replicas(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """NOT_ENOUGH_REPLICAS: a record of the topic needs three, and the disk of one is full."""
    side, broker = testbed.target, rng.randrange(BROKERS)
    side.require_in_sync(BROKERS)
    _lose_by_full_disk(side, broker)
    yield
    side.start(broker)
    side.require_in_sync(2)


@fault(Area.BROKERS, LONGER_THAN_REQUESTS)
def lose_majority(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Two of three brokers of the target at once: the last one appends what it can't have acknowledged."""
    side = testbed.target
    lost = rng.sample(range(BROKERS), 2)
    for broker in lost:
        side.cluster.kill_broker(broker)
    yield
    side.start(*lost)


@fault(Area.BROKERS, SHORT)
def kill_all_brokers(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Kill the target's brokers at once, as a power failure does: what they had written is on their disks."""
    side = testbed.target
    for broker in rng.sample(range(BROKERS), BROKERS):
        side.cluster.kill_broker(broker)
    yield
    side.start_all_again()


@fault(Area.BROKERS, SHORT, need=Need.WRITES)
def fill_disk(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Fill the disk of one broker of the target; two are enough."""
    side, broker = testbed.target, rng.randrange(BROKERS)
    _lose_by_full_disk(side, broker)
    yield
    side.start(broker)


def _lose_by_full_disk(side: Side, broker: int) -> None:
    side.fill_disk(broker)
    side.await_running(BROKERS - 1)
    side.cluster.kill_broker(broker)  # what guarded it
    side.await_led_without(broker)


@fault(Area.BROKERS, SHORT, need=Need.WRITES)
def fill_all_disks(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """Fill all disks: no broker can write any more. An operator frees space and restarts all of them."""
    side = testbed.target
    for broker in rng.sample(range(BROKERS), BROKERS):
        side.fill_disk(broker)
    # The last one may never write again: without the others it appends nothing.
    side.await_running(1)
    yield
    side.start_all_again()


@fault(Area.BROKERS, LONGER_THAN_REQUESTS)
def throttle_by_quota(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    side = rng.choice(testbed.sides)
    side.limit(rng.choice([5_000.0, 20_000.0]))
    yield
    side.limit(None)


@fault(Area.BROKERS, need=Need.ALONE)
def throttle_creations(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """By a quota of the target's controller: topics are mirrored as it lets them through."""
    testbed.target.limit_creations(rng.choice([0.3, 1.0]))
    created = testbed.create_some_topics(4)
    testbed.target.await_topics(*map(remote, created))
    yield
    testbed.target.limit_creations(None)


@fault(Area.BROKERS, need=Need.ALONE)
def lose_own_topics(testbed: DrillTestbed, rng: random.Random) -> Iterator[None]:
    """An operator deletes topics of the mirror's own; it creates them again, and goes on where it was."""
    own = [kind.of(Alias(ALIAS)) for kind in (StateTopic.OFFSETS, StateTopic.PROGRESS)]
    lost = testbed.target.topic_ids(rng.sample(own, rng.randint(1, len(own))))
    for topic in lost:
        delete(testbed.target.cluster, topic)
    testbed.target.await_others(lost)
    yield
