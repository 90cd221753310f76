"""Leader election: the choice of a leader, its encoding in the group protocol, and leases."""

import json
from collections import Counter
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.leader_election import (
    NOT_A_MEMBER,
    Assignment,
    Candidate,
    GroupOptions,
    Lease,
    Membership,
    Standing,
    elect,
)

URLS = st.integers(1, 99).map("http://node-{}:8083/".format)
FOLLOWERS = st.dictionaries(st.text(min_size=1), st.builds(Candidate, URLS), min_size=1, max_size=8)


# the chosen leader


@given(FOLLOWERS, st.data())
def test_leader_is_kept_whichever_member_elects(
    candidates: dict[str, Candidate], data: st.DataObject
) -> None:
    chooser, leader = (data.draw(st.sampled_from(sorted(candidates))) for _ in range(2))
    candidates[leader] = Candidate(candidates[leader].url, data.draw(st.integers(0, 99)))
    assignment = elect(candidates, chooser)
    assert assignment.leader == leader
    assert assignment.leader_url == candidates[leader].url
    assert assignment.members == tuple(sorted(candidate.url for candidate in candidates.values()))


@given(FOLLOWERS, st.data())
def test_electing_member_leads_if_no_candidate_does(
    candidates: dict[str, Candidate], data: st.DataObject
) -> None:
    chooser = data.draw(st.sampled_from(sorted(candidates)))
    assert elect(candidates, chooser).leader == chooser


@given(FOLLOWERS, st.data(), st.text())
def test_spread_leadership_moves_only_to_a_new_node(
    candidates: dict[str, Candidate], data: st.DataObject, group: str
) -> None:
    chooser = data.draw(st.sampled_from(sorted(candidates)))
    before = elect(candidates, chooser, group)
    assert before.successor == before.leader
    candidates["new one"] = Candidate("http://new:8083/")
    after = elect(candidates, chooser, group)
    assert after.leader in {before.leader, "new one"}
    assert elect(candidates, "new one", group) == after
    candidates[before.leader] = Candidate(candidates[before.leader].url, 1)
    assignment = elect(candidates, chooser, group)
    assert (assignment.leader, assignment.successor) == (before.leader, after.leader), (
        "it must give way first"
    )


def test_spread_groups_are_led_by_different_nodes() -> None:
    candidates = {f"member-{number}": Candidate(f"http://node-{number}:8083/") for number in range(3)}
    led = Counter(elect(candidates, "member-0", f"group-{number}").leader for number in range(300))
    assert min(led[member] for member in candidates) > 70


def test_later_of_two_leaders_is_elected() -> None:
    candidates = {
        "a": Candidate("http://a:1/", 4),
        "b": Candidate("http://b:1/", 7),
        "c": Candidate("http://c:1/", 7),
        "d": Candidate("http://d:1/"),
    }
    assert elect(candidates, "d").leader == "b"


# candidates and assignments


@given(st.builds(Candidate, URLS, st.none() | st.integers(0)))
def test_encoded_candidate_is_decoded_unchanged(candidate: Candidate) -> None:
    assert Candidate.decode(candidate.encode()) == candidate
    later = {**json.loads(candidate.encode()), "version": 2, "rack": "a"}
    assert Candidate.decode(json.dumps(later).encode()) == candidate


@given(FOLLOWERS)
def test_encoded_assignment_is_decoded_unchanged(candidates: dict[str, Candidate]) -> None:
    assignment = elect(candidates, min(candidates))
    assert Assignment.decode(assignment.encode()) == assignment


@given(st.binary())
def test_malformed_bytes_are_ignored(data: bytes) -> None:
    assert Candidate.decode(data) == Candidate("")
    assert Assignment.decode(data) is None


@pytest.mark.parametrize("said", [[], 1, None, {"url": 1}, {"leads_since": True}, {"leader": "a"}])
def test_json_with_other_fields_is_ignored(said: object) -> None:
    data = json.dumps(said).encode()
    assert Candidate.decode(data) == Candidate("")
    assert Assignment.decode(data) is None


def test_members_agree_on_leader_and_members() -> None:
    assignment = Assignment("a", "http://a:1/", ("http://a:1/", "http://b:1/"), "a")
    of_a, of_b = (assignment.membership(3, member_id) for member_id in ("a", "b"))
    assert of_a == Membership(3, "a", is_leader=True, leader_url="http://a:1/", members=assignment.members)
    assert of_b == Membership(3, "b", is_leader=False, leader_url="http://a:1/", members=assignment.members)


# leases


@dataclass
class Coordinator:
    """Models the timers of Kafka's group coordinator for one member that has an assignment.

    A rebalance begins when another member joins. This member sends no JoinGroup, so it is removed.
    """

    options: GroupOptions
    rebalance_at: float
    heard: float = 0.0
    """The time of the last heartbeat, at first that of the assignment."""
    answers: list[bool] = field(default_factory=list)
    """Whether each heartbeat found no rebalance in progress."""

    def hear(self, at: float) -> bool | None:
        """Respond to a heartbeat: whether no rebalance is in progress, None for a removed member."""
        if at >= self.removed_at:
            return None
        self.heard = at
        return at < self.rebalance_at

    @property
    def removed_at(self) -> float:
        return min(
            self.heard + self.options.session_timeout_s, self.rebalance_at + self.options.rebalance_timeout_s
        )


@given(
    st.floats(1, 100),
    st.floats(1, 100),
    st.floats(0, 300),
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 20), st.booleans()), max_size=20),
)
def test_a_lease_ends_before_the_coordinator_removes_the_member(
    session_s: float, rebalance_s: float, rebalance_at: float, beats: list[tuple[float, float, bool]]
) -> None:
    """With random delays of heartbeats and lost responses."""
    options = GroupOptions("g", session_s, 1, rebalance_s)
    coordinator, lease, now = Coordinator(options, rebalance_at), Lease(settled=-0.01), 0.0
    for pause_s, way_s, is_lost in beats:
        sent = now + pause_s
        now = sent + way_s
        is_settled = coordinator.hear(now)
        if is_settled is None:
            break
        if not is_lost:
            lease = Lease(sent, sent if is_settled else lease.settled)
    assert lease.end(options) < coordinator.removed_at


def test_lease_ends_at_the_rebalance_timeout_despite_heartbeats() -> None:
    options = GroupOptions("g", session_timeout_s=10, rebalance_timeout_s=60)
    assert Lease(heard=100, settled=100).end(options) == 110
    assert Lease(heard=130, settled=100).end(options) == 140
    assert Lease(heard=155, settled=100).end(options) == 160
    assert Lease().end(options) == -inf
    assert Lease(settled=100).end(options) == -inf, "no session is known to have begun"


def test_a_membership_ends_with_its_lease() -> None:
    membership = Membership(3, "a", is_leader=True, leader_url="http://a:1/", members=("http://a:1/",))
    standing = Standing(membership, end=10.0)
    assert standing.at(9.999) == membership
    assert standing.at(10.0) == NOT_A_MEMBER
    assert Standing().at(0.0) == NOT_A_MEMBER
