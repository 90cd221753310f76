"""Leader election in a group of workers, under failures of nodes, brokers and the network."""

import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Final

import confluent_kafka as confluent
import psutil
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, RetriableError, SparkmirrorError
from sparkmirror.domain.leader_election import Assignment, Candidate, elect
from sparkmirror.kafka.cluster import Cluster, CoordinatorKind
from sparkmirror.kafka.groups import membership_requests as group_wire
from sparkmirror.kafka.groups.membership_requests import MEMBER_ID_REQUIRED, Joined, MemberIdentity
from sparkmirror.kafka.groups.worker_group import NOT_A_MEMBER, GroupOptions, Membership, WorkerGroup
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.error_codes import NONE, REBALANCE_IN_PROGRESS
from tests.support.acls import create_acls
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import create_topic
from tests.support.connections import connection
from tests.support.freezing import frozen
from tests.support.group_coordinators import move_coordinator
from tests.support.proxy import proxied
from tests.support.recorded_setup import Acl
from tests.support.waiting import await_value

TOPIC: Final = "contract.workers"
WAIT_S: Final = 60.0
SESSION_S: Final = 4.0
BEAT_S: Final = 0.4
TAKE_OVER_S: Final = 8.0
LEAVE_S: Final = 5.0
SLOW_S: Final = 0.3


@dataclass
class Node:
    """One node, and every change of membership that it was notified of."""

    name: str
    settings: ConnectionSettings
    options: GroupOptions
    changes: list[Membership] = field(default_factory=list)
    group: WorkerGroup = field(init=False)

    def __post_init__(self) -> None:
        self.group = WorkerGroup(self.settings, self.options, self.url, self.changes.append)

    @property
    def url(self) -> str:
        return f"http://{self.name}:8083/"

    @property
    def now(self) -> Membership:
        return self.group.membership

    @property
    def leads(self) -> bool:
        return self.now.is_leader

    def await_leads(self, timeout_s: float = WAIT_S) -> None:
        await_value(lambda: self.leads, timeout_s, self.state)

    def await_failure(self) -> SparkmirrorError:
        return await_value(lambda: self.group.failure, WAIT_S, self.state)

    def state(self) -> str:
        return f"{self.name}: {self.now}, {self.group.failure}, {self.group.trouble}, changes: {self.changes}"

    def has_always_led(self) -> bool:
        """Whether it has led without a break since it first became the leader."""
        led = [membership.is_leader for membership in self.changes]
        return self.leads and all(led[led.index(True) :])


@pytest.fixture
def options() -> GroupOptions:
    """Options of a group of the test's own, with the default session timeout."""
    return GroupOptions(f"contract-workers-{uuid.uuid4().hex[:6]}", heartbeat_interval_s=BEAT_S)


@pytest.fixture
def short_session(options: GroupOptions) -> GroupOptions:
    """The same group with a short session timeout."""
    return options._replace(session_timeout_s=SESSION_S)


@pytest.fixture(scope="module")
def topic(frail_cluster: LocalCluster) -> str:
    """The topic that consumers of the tests subscribe to."""
    create_topic(frail_cluster.bootstrap_servers, TOPIC)
    return TOPIC


@contextmanager
def joining(cluster: AnyCluster | ConnectionSettings, options: GroupOptions, name: str) -> Iterator[Node]:
    settings = cluster if isinstance(cluster, ConnectionSettings) else connection(cluster)
    node = Node(name, settings, options)
    node.group.start()
    try:
        yield node
    finally:
        node.group.leave()


def await_one_leader(nodes: Sequence[Node]) -> Node:
    """Wait until all nodes agree on one leader and on the members; returns the leader."""
    urls = tuple(sorted(node.url for node in nodes))

    def agreed() -> Node | None:
        known = [node.now for node in nodes]
        leaders = [node for node, seen in zip(nodes, known, strict=True) if seen.is_leader]
        if len(leaders) != 1 or {(seen.generation, seen.leader_url, seen.members) for seen in known} != {
            (known[0].generation, leaders[0].url, urls)
        }:
            return None
        return leaders[0]

    return await_value(agreed, WAIT_S, lambda: "\n".join(node.state() for node in nodes))


class ManualMember:
    """A group member whose requests the test sends one by one."""

    def __init__(self, cluster: AnyCluster, options: GroupOptions) -> None:
        self.options = options
        settings = connection(cluster)
        with closing(Cluster(settings)) as asked:  # a new cluster has no coordinators until somebody asks
            await_value(
                lambda: asked.coordinator(CoordinatorKind.GROUP, options.group_id).code == NONE,
                WAIT_S,
                lambda: str(asked.coordinator(CoordinatorKind.GROUP, options.group_id)),
            )
        self.connection = Connection.open(*settings.bootstrap_servers[0], settings)
        self.identity = MemberIdentity(options.group_id, "", -1)

    def join(self) -> Joined:
        """Join; returns when the coordinator has completed the rebalance."""
        metadata = Candidate("http://manual:8083/").encode()

        def joined() -> Joined | None:
            answer = group_wire.join(self.connection, self.options, self.identity.member_id, metadata, WAIT_S)
            if answer.code == MEMBER_ID_REQUIRED:
                self.identity = self.identity._replace(member_id=answer.member_id)
            return answer if answer.code == NONE else None

        answer = await_value(joined, WAIT_S, lambda: "the manual member can't join")
        self.identity = MemberIdentity(self.options.group_id, answer.member_id, answer.generation)
        return answer

    def assign(self, joined: Joined, url: str) -> None:
        """Assign leadership to the node of this URL."""
        candidates = {name: Candidate.decode(metadata) for name, metadata in joined.candidates.items()}
        (leader,) = (name for name, candidate in candidates.items() if candidate.url == url)
        assignment = Assignment(leader, url, (), leader).encode()
        assert (
            group_wire.sync(
                self.connection, self.identity, dict.fromkeys(candidates, assignment), WAIT_S
            ).code
            == NONE
        )

    def await_rebalance(self) -> None:
        await_value(
            lambda: group_wire.heartbeat(self.connection, self.identity, WAIT_S) == REBALANCE_IN_PROGRESS,
            WAIT_S,
            lambda: "nobody joins",
        )

    def leave(self) -> None:
        group_wire.leave(self.connection, self.identity, WAIT_S)


@contextmanager
def manual_member(cluster: AnyCluster, options: GroupOptions) -> Iterator[ManualMember]:
    """A member that leaves the group at the end of the block."""
    made = ManualMember(cluster, options)
    try:
        yield made
    finally:
        made.leave()
        made.connection.close()


# leader election


def test_leader_leads_until_it_leaves_and_another_takes_over(
    group_cluster: AnyCluster, options: GroupOptions
) -> None:
    with ExitStack() as leaving:
        nodes = [leaving.enter_context(joining(group_cluster, options, "first"))]
        nodes[0].await_leads()
        nodes += [
            leaving.enter_context(joining(group_cluster, options, name)) for name in ("second", "third")
        ]
        assert await_one_leader(nodes) is nodes[0]
        assert nodes[0].has_always_led()

        nodes.pop(1).group.leave()
        assert await_one_leader(nodes) is nodes[0]
        assert nodes[0].has_always_led()

        left = nodes.pop(0)
        left.group.leave()
        nodes[0].await_leads(TAKE_OVER_S)
        assert await_one_leader(nodes) is nodes[0]
        assert left.now == NOT_A_MEMBER
        assert left.changes[-1].is_leader, "it leaves without a notification"
    assert not group_threads()


def group_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "worker group"]


def test_leader_continues_when_kafka_elects_another_member(
    group_cluster: AnyCluster, options: GroupOptions
) -> None:
    with manual_member(group_cluster, options) as first, ExitStack() as leaving:
        first.assign(first.join(), "http://manual:8083/")
        nodes = []
        for name in ("one", "two", "three"):
            nodes.append(leaving.enter_context(joining(group_cluster, options, name)))
            first.await_rebalance()
            joined = first.join()
            assert joined.is_leader
            said = {Candidate.decode(metadata) for metadata in joined.candidates.values()}
            assert Candidate("http://one:8083/", 2 if len(nodes) > 1 else None) in said
            first.assign(joined, "http://one:8083/")
            nodes[0].await_leads()
        first.leave()
        assert await_one_leader(nodes) is nodes[0]
        assert nodes[0].has_always_led()


def test_leader_continues_while_a_rebalance_waits_for_dead_members(
    group_cluster: AnyCluster, short_session: GroupOptions
) -> None:
    """The rebalance takes longer than its session timeout: heartbeats continue during JoinGroup."""
    dead_options = short_session._replace(session_timeout_s=2 * SESSION_S)
    with (
        manual_member(group_cluster, dead_options) as dead_member,
        joining(group_cluster, short_session, "leader") as leader,
    ):
        leader.await_leads()

        def joined() -> bool:
            dead_member.join()
            return group_wire.sync(dead_member.connection, dead_member.identity, {}, WAIT_S).code == NONE

        await_value(joined, WAIT_S, leader.state)
        began = time.monotonic()
        with joining(group_cluster, short_session, "joiner") as joiner:
            assert await_one_leader([leader, joiner]) is leader
        assert time.monotonic() - began > 1.5 * SESSION_S, "nobody was waited for"
        assert leader.has_always_led()


def test_slow_leader_stops_before_another_leads(group_cluster: AnyCluster, options: GroupOptions) -> None:
    """Although every response reaches the first leader late."""
    spreading = options._replace(spreads=True)
    ranked = sorted(("one", "two"), key=lambda name: ranks_first(name, ("one", "two"), options.group_id))
    with proxied(*((HOST, broker.port) for broker in group_cluster.brokers)) as (proxy,):
        proxy.delay(to_client_s=SLOW_S)
        far = ConnectionSettings((proxy.address,))
        with joining(far, spreading, ranked[0]) as slow:
            slow.await_leads()
            with (
                joining(group_cluster, spreading, ranked[1]) as successor,
                watched_for_two_leaders(slow, successor) as together,
            ):
                assert await_one_leader([slow, successor]) is successor
                assert not together
                assert len(successor.changes) > 1, "the leader was changed only after the other had joined"
                successor.group.leave()
                slow.await_leads()
                assert not together


def ranks_first(name: str, names: Sequence[str], group_id: str) -> bool:
    candidates = {one: Candidate(f"http://{one}:8083/") for one in names}
    return elect(candidates, name, group_id).leader == name


# isolated and frozen leaders


def test_isolated_leader_stops_before_others_lead(
    group_cluster: AnyCluster, short_session: GroupOptions
) -> None:
    with proxied(*((HOST, broker.port) for broker in group_cluster.brokers)) as (proxy,):
        far = ConnectionSettings((proxy.address,))
        with joining(far, short_session, "cut") as cut:
            cut.await_leads()
            with joining(group_cluster, short_session, "well") as well:
                assert await_one_leader([cut, well]) is cut
                with watched_for_two_leaders(cut, well) as together:
                    proxy.silence()
                    well.await_leads()
                    assert not cut.leads
                    assert cut.changes[-1] == NOT_A_MEMBER
                    await_value(lambda: cut.group.trouble, WAIT_S, cut.state)
                    proxy.restore()
                    assert await_one_leader([cut, well]) is well
                assert well.has_always_led()
                assert not together
                proxy.silence()
                began = time.monotonic()
                cut.group.leave()
                assert time.monotonic() - began < LEAVE_S
                assert len(group_threads()) == 1, "that of the other node"
                proxy.restore()


@contextmanager
def watched_for_two_leaders(before: Node, after: Node) -> Iterator[list[float]]:
    """ProgressReports both nodes; yields the times at which both led at once, `after` being read first."""
    together: list[float] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.001):
            if after.leads and before.leads:
                together.append(time.monotonic())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield together
    finally:
        ended.set()
        watcher.join()


FROZEN: Final = """
import sys, time
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.groups.worker_group import GroupOptions, WorkerGroup
host, port, group, session_s, beat_s = sys.argv[1:]
options = GroupOptions(group, float(session_s), float(beat_s))
node = WorkerGroup(ConnectionSettings(((host, int(port)),)), options, "http://frozen:8083/", lambda _: None)
node.start()
was, before = None, time.monotonic()
while True:
    now = time.monotonic()
    leads = node.membership.is_leader
    if leads and now - before > options.session_timeout_s:
        print("leads after its session", flush=True)
    if leads is not was:
        print("leads" if leads else "follows", flush=True)
    was, before = leads, now
    time.sleep(0.001)
"""


def test_frozen_leader_does_not_lead_after_waking(
    frail_cluster: LocalCluster, short_session: GroupOptions
) -> None:
    arguments = [HOST, frail_cluster.brokers[0].port, short_session.group_id, SESSION_S, BEAT_S]
    with (
        subprocess.Popen(
            [sys.executable, "-c", FROZEN, *map(str, arguments)], stdout=subprocess.PIPE, text=True
        ) as sleeper,
        joining_after(sleeper, frail_cluster, short_session) as well,
    ):
        with frozen(sleeper.pid):
            well.await_leads()
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "follows\n"
        await_value(lambda: len(well.now.members) == 2, WAIT_S, well.state)
        assert well.has_always_led()
        sleeper.kill()
        assert sleeper.stdout.read() == ""


@contextmanager
def joining_after(
    child: "subprocess.Popen[str]", cluster: LocalCluster, options: GroupOptions
) -> Iterator[Node]:
    """A second node, joined once the child leads. The child is killed at the end of the block."""
    assert child.stdout is not None
    try:
        assert [child.stdout.readline() for _ in range(2)] == ["follows\n", "leads\n"]
        with joining(cluster, options, "well") as node:
            await_value(lambda: len(node.now.members) == 2, WAIT_S, node.state)
            yield node
    finally:
        child.kill()


# restarted brokers and moved coordinators


def test_leader_stays_the_same_after_a_broker_restart(
    frail_cluster: LocalCluster, short_session: GroupOptions
) -> None:
    with joining(frail_cluster, short_session, "first") as first:
        first.await_leads()
        with joining(frail_cluster, short_session, "second") as second:
            assert await_one_leader([first, second]) is first
            frail_cluster.kill_broker(0)
            try:
                await_value(lambda: first.now == NOT_A_MEMBER, WAIT_S, first.state)
                assert not second.leads
            finally:
                frail_cluster.start_broker(0)
            assert await_one_leader([first, second]) is first
            assert not any(membership.is_leader for membership in second.changes)


def test_nodes_follow_a_moved_coordinator(trio: LocalCluster, options: GroupOptions) -> None:
    with joining(trio, options, "first") as first:
        first.await_leads()
        with joining(trio, options, "second") as second:
            assert await_one_leader([first, second]) is first
            generation = first.now.generation
            before = first.group.coordinator
            move_coordinator(trio, options.group_id)
            await_value(
                lambda: before not in {first.group.coordinator, second.group.coordinator}, WAIT_S, first.state
            )
            with joining(trio, options, "third") as third:
                assert await_one_leader([first, second, third]) is first
            assert first.has_always_led()
            assert generation in {membership.generation for membership in first.changes}


# refused members


def consumer(cluster: LocalCluster, group_id: str, **config: object) -> confluent.Consumer:
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group_id,
        "client.id": "stranger",
        "log_level": 0,
        **config,
    }
    return confluent.Consumer(settings)


def is_member(stranger: confluent.Consumer) -> bool:
    """Whether the consumer has an assignment. The member id proves nothing: with KIP-848 it chooses that."""
    stranger.poll(0.05)  # a message may be a transient error
    return bool(stranger.assignment())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_of_consumers_is_not_joined(
    frail_cluster: LocalCluster, topic: str, options: GroupOptions, protocol: str
) -> None:
    stranger = consumer(frail_cluster, options.group_id, **{"group.protocol": protocol})
    try:
        stranger.subscribe([topic])
        await_value(lambda: is_member(stranger), WAIT_S, lambda: "it can't join")
        with joining(frail_cluster, options, "late") as late:
            failure = str(late.await_failure())
        assert failure.startswith(f"group {options.group_id}: JoinGroup: INCONSISTENT_GROUP_PROTOCOL: ")
        assert failure.endswith("Stop them first, or choose another group.id")
        assert ("(stranger at 127.0.0.1)" in failure) is (protocol == "classic")
        assert late.changes == []
        assert not group_threads()
    finally:
        stranger.close()


def test_consumer_is_refused_by_a_group_of_workers(
    frail_cluster: LocalCluster, topic: str, options: GroupOptions
) -> None:
    errors: list[confluent.KafkaError] = []
    with joining(frail_cluster, options, "first") as first:
        first.await_leads()
        stranger = consumer(frail_cluster, options.group_id, error_cb=errors.append)
        try:
            stranger.subscribe([topic])

            def refused() -> bool:
                message = stranger.poll(0.05)
                seen = [*errors, *([message.error()] if message is not None else [])]
                return any(
                    error and error.code() == confluent.KafkaError.INCONSISTENT_GROUP_PROTOCOL
                    for error in seen
                )

            await_value(refused, WAIT_S, lambda: str(errors))
        finally:
            stranger.close()
        assert first.has_always_led()
        assert len(first.changes) == 1


def test_missing_acl_is_named(frail_cluster: LocalCluster, options: GroupOptions) -> None:
    denied: Acl = ("GROUP", "LITERAL", options.group_id, "User:ANONYMOUS", "*", "READ", "DENY")
    with joining(frail_cluster, options, "refused") as refused:
        refused.await_leads()
        create_acls(frail_cluster, [denied])
        failure = refused.await_failure()
    assert isinstance(failure, AuthorizationError)
    assert f"--operation Read --group {options.group_id}" in str(failure)
    assert refused.changes[-1] == NOT_A_MEMBER


def test_session_timeout_below_the_brokers_minimum_is_refused(
    frail_cluster: LocalCluster, options: GroupOptions
) -> None:
    with joining(frail_cluster, options._replace(session_timeout_s=0.5), "hasty") as hasty:
        failure = hasty.await_failure()
    assert "group.min.session.timeout.ms" in str(failure)


# leaving


def test_member_that_leaves_while_joining_delays_no_other(
    frail_cluster: LocalCluster, options: GroupOptions
) -> None:
    slow = options._replace(session_timeout_s=30)
    files = psutil.Process().num_fds()
    with manual_member(frail_cluster, slow) as first:
        first.assign(first.join(), "http://manual:8083/")
        with joining(frail_cluster, slow, "waiting") as waiting:
            first.await_rebalance()
            began = time.monotonic()
            waiting.group.leave()
            assert time.monotonic() - began < LEAVE_S
        joined = first.join()
        assert [Candidate.decode(metadata).url for metadata in joined.candidates.values()] == [
            "http://manual:8083/"
        ]
        assert time.monotonic() - began < slow.session_timeout_s / 2
    assert not group_threads()
    assert psutil.Process().num_fds() <= files


def test_node_stops_when_no_broker_is_reachable(options: GroupOptions) -> None:
    with joining(ConnectionSettings(((HOST, 1),)), options, "alone") as alone:
        trouble = await_value(lambda: alone.group.trouble, WAIT_S, alone.state)
        assert isinstance(trouble, RetriableError)
        assert alone.group.failure is None
    assert not group_threads()
    WorkerGroup(alone.settings, options, alone.url, alone.changes.append).leave()  # never started
    assert alone.changes == []
