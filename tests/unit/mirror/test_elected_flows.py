"""A flow's group decides which process runs it; groups and runs are preset."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import (
    DisconnectedError,
    KafkaError,
    RetriableError,
    SparkmirrorError,
    SupersededError,
)
from sparkmirror.domain.leader_election import NOT_A_MEMBER, Membership
from sparkmirror.kafka.groups.membership_requests import GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL
from sparkmirror.kafka.groups.worker_group import WorkerGroup
from sparkmirror.kafka.wire.error_codes import GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from sparkmirror.mirror.connector_runs import ConnectorRun
from sparkmirror.mirror.elected_flows import UNREACHED_S, ElectedFlow, election_groups
from sparkmirror.mirror.flow_runs import FlowRun
from sparkmirror.settings.configured import configured_flow

PROPERTIES = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
}
LEADER = Membership(1, "me", is_leader=True, leader_url="here:1:aaaa", members=())
FOLLOWER = Membership(1, "me", is_leader=False, leader_url="there:7:bbbb", members=())
AWAY = DisconnectedError("b:9092 does not answer")
HELD = RetriableError("waits for members of another kind", INCONSISTENT_GROUP_PROTOCOL)


@dataclass
class Group:
    membership: Membership = NOT_A_MEMBER
    failure: SparkmirrorError | None = None
    trouble: SparkmirrorError | None = None


@dataclass
class Run:
    """A flow that does nothing."""

    may_run: Callable[[], bool] = lambda: False
    is_elected: Callable[[], bool] = lambda: False
    failure: SparkmirrorError | None = None
    connectors: list[ConnectorRun] = field(default_factory=list)

    def start(self, may_run: Callable[[], bool], is_elected: Callable[[], bool]) -> None:
        self.may_run = may_run
        self.is_elected = is_elected


class Bench:
    def __init__(self, *, is_shared: bool = False) -> None:
        (config,) = MirrorMakerConfig(Properties(PROPERTIES), {}).flows()
        self.group = Group()
        self.run = Run()
        self.now = 100.0
        self.flow = ElectedFlow(
            configured_flow(config),
            lambda _: cast("FlowRun", self.run),
            cast("WorkerGroup", self.group),
            is_shared=is_shared,
        )

    def runs(self, after_s: float = 1.0) -> bool:
        """Check after a second; whether the flow runs here, and its jobs may."""
        self.now += after_s
        self.flow.check(self.now)
        assert self.flow.run is None or self.run.may_run()
        return self.flow.run is not None


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_leader_runs_the_flow_and_others_stand_by(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert not bench.runs()
    assert not bench.flow.is_decided
    bench.group.membership = FOLLOWER
    assert not any(bench.runs() for _ in range(20))
    assert bench.flow.is_decided
    assert caplog.messages == [
        "stands by: process 7 on there runs this flow, and this one takes over when that is gone"
    ]
    bench.group.membership = LEADER
    assert bench.runs()
    assert bench.run.is_elected()


def test_a_process_that_waits_for_killed_ones_says_so(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert not any(bench.runs() for _ in range(20))
    assert caplog.messages == [
        "waits: a killed process counts as one that runs until its session of 8 s ends"
    ]


def test_the_flow_starts_although_its_group_can_not_be_reached(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.group.trouble = AWAY
    assert not bench.runs()
    assert not bench.runs(UNREACHED_S - 0.1)
    assert bench.runs(0.2)
    assert not bench.run.is_elected()
    assert f"its group can't be reached: {AWAY}" in caplog.text
    assert "runs without" in caplog.text
    bench.group.trouble = None  # it joins
    assert bench.runs()
    bench.group.membership = FOLLOWER
    assert not bench.runs()


def test_a_leader_keeps_the_flow_while_its_group_can_not_be_reached(bench: Bench) -> None:
    bench.group.membership = LEADER
    assert bench.runs()
    bench.group.trouble = AWAY
    assert bench.runs()
    bench.group.membership = NOT_A_MEMBER
    bench.now += 1
    bench.flow.check(bench.now)
    assert bench.runs()
    bench.group.trouble, bench.group.membership = None, LEADER
    assert bench.runs()
    assert bench.run.is_elected()


@pytest.mark.parametrize("trouble", [None, AWAY])
def test_a_process_that_was_frozen_gives_the_flow_away(
    bench: Bench, trouble: SparkmirrorError | None
) -> None:
    bench.group.membership = LEADER
    assert bench.runs()
    bench.group.membership, bench.group.trouble = NOT_A_MEMBER, trouble
    assert not bench.runs(60.0)


def test_a_process_without_group_stands_by_where_another_has_taken_the_flow_over(bench: Bench) -> None:
    bench.group.trouble = AWAY
    bench.runs()
    assert bench.runs(UNREACHED_S)
    bench.run.failure = SupersededError("process 7 on there copies this flow now")
    assert not any(bench.runs() for _ in range(20))
    bench.run = Run()
    bench.group.membership, bench.group.trouble = LEADER, None
    assert bench.runs()


@pytest.mark.parametrize("code", [GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION])
def test_the_flow_runs_where_the_group_refuses_the_process(
    bench: Bench, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    bench.group.failure = KafkaError("group A-mm2: refused", code)
    assert all(bench.runs() for _ in range(3))
    (line,) = caplog.messages
    assert line.startswith("group A-mm2: refused; runs without election: a second process with this file")
    bench.run.failure = SupersededError("process 7 on there copies this flow now")
    with pytest.raises(SparkmirrorError, match="A->B: process 7 on there copies this flow now"):
        bench.runs()


@pytest.mark.parametrize("code", [INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED])
def test_the_flow_does_not_run_beside_others_that_hold_its_group(
    bench: Bench, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    bench.group.trouble = HELD
    assert not any(bench.runs() for _ in range(30))
    assert caplog.messages == ["waits for members of another kind"]
    bench.group.failure = KafkaError("java-1 at 127.0.0.1", code)
    with pytest.raises(SparkmirrorError, match="A->B: java-1 at"):
        bench.runs()


def test_each_flow_has_a_group_of_its_own() -> None:
    settings = {
        **PROPERTIES,
        "clusters": "A, B, C",
        "C.bootstrap.servers": "c:9092",
        "C->B.enabled": "true",
        "A->C.enabled": "true",
    }
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["A-mm2", "A-mm2", "C-mm2"]),
        ({"B.group.id": "mirrors", "C.group.id": "mirrors"}, ["mirrors-A", "mirrors", "mirrors-C"]),
        ({"A->B.name": "another"}, ["A-mm2-another", "A-mm2", "C-mm2"]),
    ]
    for own, found in cases:
        flows = [
            configured_flow(flow) for flow in MirrorMakerConfig(Properties({**settings, **own}), {}).flows()
        ]
        flows.sort(key=lambda flow: flow.flow)
        assert [str(flow.flow) for flow in flows] == ["A->B", "A->C", "C->B"]
        assert [group.group_id for group in election_groups(flows, spreads=False)] == found


def test_a_shared_flow_runs_only_where_it_is_elected() -> None:
    bench = Bench(is_shared=True)
    bench.group.trouble = AWAY
    assert not any(bench.runs() for _ in range(30))
    bench.group.failure = KafkaError("group A-mm2: refused", GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(SparkmirrorError, match="refused"):
        bench.runs()


def test_a_failure_of_the_run_ends_the_process(bench: Bench) -> None:
    bench.group.membership = LEADER
    assert bench.runs()
    bench.run.failure = SparkmirrorError("a topic is unfit")
    with pytest.raises(SparkmirrorError, match="A->B: a topic is unfit"):
        bench.runs()


@pytest.mark.parametrize(
    ("group", "standstill", "waits_for"),
    [
        (Group(), "starting", "the election"),
        (Group(trouble=AWAY), "starting", f"the election: its group can't be reached: {AWAY}"),
        (Group(trouble=HELD), "starting", f"the election: {HELD}"),
        (
            Group(FOLLOWER),
            "standby",
            "stands by: process 7 on there runs this flow, and this one takes over when that is gone",
        ),
    ],
)
def test_a_flow_that_does_not_run_here_says_what_it_waits_for(
    group: Group, standstill: str, waits_for: str
) -> None:
    bench = Bench()
    bench.flow.group = cast("WorkerGroup", group)
    (look,) = bench.flow.standing()
    assert (look.kind, look.standstill, look.waits_for) == ("source", standstill, waits_for)
