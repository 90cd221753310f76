"""GroupMember on a cluster in memory, in virtual time: never do two nodes lead, and in the end one does."""

import random
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future

import pytest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.leader_election import NOT_A_MEMBER, GroupOptions, Membership
from sparkmirror.kafka.groups.worker_membership import GroupMember
from tests.memory.cluster import MemoryBroker, MemoryCluster
from tests.memory.network import Fate, MemoryNetwork
from tests.memory.virtual_time import VirtualTime

OPTIONS = GroupOptions("workers", session_timeout_s=10, heartbeat_interval_s=3, rebalance_timeout_s=60)
KINDS = (ApiVersionsRequest, FindCoordinatorRequest, JoinGroupRequest, SyncGroupRequest, HeartbeatRequest)
API_KEYS = [kind.API_KEY for kind in KINDS]
REQUESTS = [pytest.param(kind.API_KEY, id=kind.__name__.removesuffix("Request")) for kind in KINDS]
FAULTS = [Fate.REQUEST_LOST, Fate.RESPONSE_LOST, Fate.SILENCE]


class Way:
    """The way of one node to the brokers: it may be cut, or lose the next request of a kind."""

    def __init__(self) -> None:
        self.is_cut = False
        self.next: dict[int, Fate] = {}

    def fate(self, api_key: int, /) -> Fate:
        return Fate.SILENCE if self.is_cut else self.next.pop(api_key, Fate.WELL)


class Node:
    def __init__(self, world: "GroupWorld", name: str) -> None:
        self.way = Way()
        self.url = f"http://{name}:8083/"
        self.network = MemoryNetwork(world.time, random.Random(name), self.way)
        for broker in world.cluster.brokers:
            self.network.add(broker.host, broker.port, broker)
        self.changes: list[Membership] = []
        addresses = tuple((broker.host, broker.port) for broker in world.cluster.brokers)
        settings = ConnectionSettings(addresses, network=self.network)
        self.member = GroupMember(settings, world.options, self.url, self.changes.append)
        self._executor = self.network.executor()
        self._run: Future[None] = self._executor.submit(self.member.run)

    @property
    def now(self) -> Membership:
        return self.member.membership

    @property
    def has_ended(self) -> bool:
        return self._run.done()

    def kill(self) -> None:
        self._executor.abandon()
        self.network.disconnect()


class GroupWorld:
    """Brokers and nodes. While events run, two nodes that lead at once fail the test."""

    def __init__(self, brokers: int = 3, options: GroupOptions = OPTIONS) -> None:
        random.seed(1)  # the product's own jitter
        self.time = VirtualTime()
        self.cluster = MemoryCluster(self.time, brokers=brokers, rng=random.Random(1))
        self.options = options
        self.nodes: list[Node] = []

    def join(self, name: str) -> Node:
        self.nodes.append(Node(self, name))
        return self.nodes[-1]

    def kill(self, node: Node) -> None:
        node.kill()
        self.nodes.remove(node)

    def leave(self, node: Node) -> None:
        node.member.stop()
        self.run_until(lambda: node.has_ended, 3.0)
        self.nodes.remove(node)

    @property
    def leaders(self) -> list[Node]:
        return [node for node in self.nodes if node.now.is_leader]

    def run_until(self, holds: Callable[[], bool], within_s: float = 30.0) -> None:
        def checked() -> bool:
            assert len(self.leaders) <= 1, [node.url for node in self.leaders]
            return holds()

        assert self.time.run_until(checked, within_s), [node.now for node in self.nodes]

    def run_for(self, seconds: float) -> None:
        end = self.time.time() + seconds
        self.run_until(lambda: self.time.time() >= end, seconds + 1.0)

    def agree(self, within_s: float = 90.0) -> Node:
        """The leader, when all nodes know it and each other."""
        urls = tuple(sorted(node.url for node in self.nodes))

        def agreed() -> bool:
            views = {(node.now.generation, node.now.leader_url, node.now.members) for node in self.nodes}
            return len(self.leaders) == 1 and {(url, known) for _, url, known in views} == {
                (self.leaders[0].url, urls)
            }

        self.run_until(agreed, within_s)
        return self.leaders[0]

    def stop_broker(self, broker: MemoryBroker) -> None:
        self.cluster.stop(broker)
        for node in self.nodes:
            node.network.disconnect(broker)

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
        while self.time.turns and self.time.step():
            pass


@pytest.fixture
def world() -> Iterator[GroupWorld]:
    made = GroupWorld()
    yield made
    made.close()


def leads_in(changes: Collection[Membership]) -> list[bool]:
    return [change.is_leader for change in changes]


def test_first_member_leads_until_it_leaves_and_another_takes_over_at_once(world: GroupWorld) -> None:
    first = world.join("first")
    assert world.agree() is first
    second = world.join("second")
    assert world.agree() is first
    world.leave(first)
    assert first.now == NOT_A_MEMBER
    left_at = world.time.time()
    assert world.agree() is second
    assert world.time.time() - left_at < OPTIONS.heartbeat_interval_s + 1.0
    assert leads_in(second.changes) == [False, False, True] or leads_in(second.changes) == [False, True]


def test_leader_that_is_cut_off_stops_leading_before_another_leads_and_joins_again(world: GroupWorld) -> None:
    cut = world.join("cut")
    world.agree()
    well = world.join("well")
    assert world.agree() is cut
    cut.way.is_cut = True
    world.run_until(lambda: well.now.is_leader)
    assert cut.changes[-1] == NOT_A_MEMBER
    world.run_until(lambda: cut.member.trouble is not None)
    cut.way.is_cut = False
    cut.network.disconnect()
    assert world.agree() is well
    assert cut.member.trouble is None


def test_killed_leader_is_replaced_when_its_session_has_expired(world: GroupWorld) -> None:
    first = world.join("first")
    world.agree()
    second = world.join("second")
    world.agree()
    world.kill(first)
    killed_at = world.time.time()
    assert world.agree() is second
    assert world.time.time() - killed_at < OPTIONS.session_timeout_s + OPTIONS.heartbeat_interval_s + 1.0


def test_leader_continues_to_lead_while_a_rebalance_waits_for_a_dead_member(world: GroupWorld) -> None:
    leader = world.join("leader")
    world.agree()
    dead = world.join("dead")
    world.agree()
    world.kill(dead)
    world.join("joiner")
    assert world.agree() is leader
    first = leads_in(leader.changes).index(True)
    assert all(leads_in(leader.changes)[first:])


def test_member_that_cannot_reach_a_broker_leaves_in_two_seconds(world: GroupWorld) -> None:
    node = world.join("node")
    world.agree()
    node.way.is_cut = True
    world.run_for(1.0)
    began = world.time.time()
    world.leave(node)
    assert world.time.time() - began < 2.5


def test_leaving_sends_leave_group_and_others_need_not_wait_for_the_session(world: GroupWorld) -> None:
    node = world.join("node")
    world.agree()
    node.way.next[LeaveGroupRequest.API_KEY] = Fate.WELL
    world.leave(node)
    assert LeaveGroupRequest.API_KEY not in node.way.next, "LeaveGroup was not sent"
    assert not world.cluster.groups.group(OPTIONS.group_id).members


def test_coordinator_that_moves_is_followed_and_the_leader_stays(world: GroupWorld) -> None:
    first = world.join("first")
    world.agree()
    second = world.join("second")
    world.agree()
    before = first.member.coordinator
    world.cluster.coordinator_shift += 1
    world.run_until(lambda: before not in {first.member.coordinator, second.member.coordinator})
    assert world.agree() is first
    assert all(leads_in(first.changes)[leads_in(first.changes).index(True) :])


@pytest.mark.parametrize("fate", FAULTS, ids=[fate.name for fate in FAULTS])
@pytest.mark.parametrize("api_key", REQUESTS)
def test_one_lost_request_ends_in_one_leader(world: GroupWorld, api_key: int, fate: Fate) -> None:
    first = world.join("first")
    first.way.next[api_key] = fate
    assert world.agree() is first
    second = world.join("second")
    second.way.next[api_key] = fate
    world.agree()
    first.way.next[api_key] = fate
    world.cluster.coordinator_shift += 1  # brings every kind of request again
    world.run_for(30.0)
    world.agree()
    assert not second.way.next


@pytest.mark.parametrize("spreads", [False, True], ids=["leader stays", "leaders spread"])
@pytest.mark.parametrize("seed", range(40))
def test_random_faults_never_make_two_leaders_and_end_in_one(seed: int, spreads: bool) -> None:
    rng = random.Random(seed)
    world = GroupWorld(options=OPTIONS._replace(spreads=spreads, rebalance_timeout_s=rng.choice([8.0, 60.0])))
    faults = RandomFaults(world, rng)
    try:
        for name in ("a", "b", "c"):
            world.join(name)
        for _ in range(20):
            world.run_for(rng.choice([0.01, 0.5, 4.0, 15.0]))
            faults.inject()
        faults.end()
        world.agree(200.0)
    finally:
        world.close()


class RandomFaults:
    """Random faults of nodes, brokers and the ways between them."""

    def __init__(self, world: GroupWorld, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._joined = 0
        self._all = (
            self._cut_or_restore,
            self._disconnect,
            self._lose_request,
            self._move_coordinator,
            self._stop_broker,
            self.restart_brokers,
            self._kill,
            self._join,
        )

    def inject(self) -> None:
        self._rng.choice(self._all)()

    def _node(self) -> Node:
        return self._rng.choice(self._world.nodes)

    def _cut_or_restore(self) -> None:
        node = self._node()
        node.way.is_cut = not node.way.is_cut
        if not node.way.is_cut:
            node.network.disconnect()

    def _disconnect(self) -> None:
        self._node().network.disconnect()

    def _lose_request(self) -> None:
        self._node().way.next[self._rng.choice(API_KEYS)] = self._rng.choice(FAULTS)

    def _move_coordinator(self) -> None:
        self._world.cluster.coordinator_shift += 1

    def _stop_broker(self) -> None:
        self._world.stop_broker(self._rng.choice(self._world.cluster.brokers))

    def restart_brokers(self) -> None:
        for broker in self._world.cluster.brokers:
            self._world.cluster.restart(broker)

    def _kill(self) -> None:
        if len(self._world.nodes) > 2:
            self._world.kill(self._node())

    def _join(self) -> None:
        if len(self._world.nodes) < 5:
            self._joined += 1
            self._world.join(f"later-{self._joined}")

    def end(self) -> None:
        self.restart_brokers()
        for node in self._world.nodes:
            node.way.is_cut = False
            node.way.next.clear()
            node.network.disconnect()


def test_members_whose_every_request_is_throttled_agree_and_stay(world: GroupWorld) -> None:
    """Throttle times are shorter than the heartbeat interval: such a quota is measured each second."""
    world.cluster.quotas.requests_s = 1.0
    world.join("first")
    world.join("second")
    leader = world.agree()
    generation = leader.now.generation
    world.run_for(5 * OPTIONS.session_timeout_s)
    assert world.agree() is leader
    assert leader.now.generation == generation
