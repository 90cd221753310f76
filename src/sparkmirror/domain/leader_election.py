"""Elects the leader of a group of workers, and computes how long a member may rely on the result.

Kafka's coordinator keeps the members and names one of them the group's leader. That one elects the leader of
the work from the metadata that members send with JoinGroup; SyncGroup gives every member the same assignment.
Both are JSON with a `version`; unknown fields are for later versions and ignored.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple, Self

NOT_IN_A_GENERATION: Final = -1
_VERSION: Final = 1


class GroupOptions(NamedTuple):
    """Named as Kafka names them; the coordinator accepts session time-outs within limits of its own."""

    group_id: str
    session_timeout_s: float = 10
    """A member that sends nothing for so long is removed."""
    heartbeat_interval_s: float = 3
    rebalance_timeout_s: float = 60
    """The time that a rebalance waits for members that send heartbeats and do not join."""
    spreads: bool = False
    """Whether to spread the leaders of groups over the nodes: a node that joins may take over then."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A node's view of its group."""

    generation: int
    """NOT_IN_A_GENERATION while not a member."""
    member_id: str
    is_leader: bool
    leader_url: str | None
    """The leader's URL; None while no leader is known."""
    members: tuple[str, ...]
    """Every node's URL, sorted."""


NOT_A_MEMBER: Final = Membership(NOT_IN_A_GENERATION, "", is_leader=False, leader_url=None, members=())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member's metadata in JoinGroup."""

    url: str
    leads_since: int | None = None
    """The generation that made it the leader, if it still is; None for all others."""

    def encode(self) -> bytes:
        metadata = {"version": _VERSION, "url": self.url, "leads_since": self.leads_since}
        return json.dumps(metadata).encode()

    @classmethod
    def decode(cls, metadata: bytes) -> Self:
        """Metadata that can't be decoded is a member with an empty URL."""
        fields = _decoded(metadata)
        url, since = fields.get("url"), fields.get("leads_since")
        return cls(url if isinstance(url, str) else "", since if type(since) is int else None)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The same for every member. `leader` and `successor` are member ids."""

    leader: str
    leader_url: str
    members: tuple[str, ...]
    successor: str
    """The member that is to lead when the leader has given way; the leader itself, as a rule."""

    def encode(self) -> bytes:
        fields = {
            "version": _VERSION,
            "leader": self.leader,
            "leader_url": self.leader_url,
            "members": self.members,
            "successor": self.successor,
        }
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, assignment: bytes) -> Self | None:
        """Decode an assignment; None when it can't be decoded, or Kafka's leader did not know this member."""
        fields = _decoded(assignment)
        leader, url, members = (fields.get(key) for key in ("leader", "leader_url", "members"))
        successor = fields.get("successor")
        if not isinstance(leader, str) or not isinstance(url, str) or not isinstance(members, list):
            return None
        return cls(leader, url, tuple(map(str, members)), successor if isinstance(successor, str) else leader)

    def membership(self, generation: int, member_id: str) -> Membership:
        return Membership(
            generation,
            member_id,
            is_leader=self.leader == member_id,
            leader_url=self.leader_url,
            members=self.members,
        )


def elect(candidates: Mapping[str, Candidate], own_id: str, spread_by: str | None = None) -> Assignment:
    """The election by the member that Kafka names the leader: the leader so far stays, else it elects itself.

    Running work is not moved, though Kafka may name another member the leader from one generation to the
    next. Two that claim to lead can't come from one group; the later one would be right.

    With `spread_by`, a group's name, the member that ranks first for that name is elected: groups spread over
    the same nodes, and only those move that a node which joined or left would lead (rendezvous hashing). The
    leader so far is asked to give way first: a member may learn late of an election, and relies on leading
    until then.
    """
    first = own_id
    if spread_by is not None:
        first = max(candidates, key=lambda member_id: _rank(spread_by, candidates[member_id].url, member_id))
    leading = [
        (-candidate.leads_since, member_id)
        for member_id, candidate in candidates.items()
        if candidate.leads_since is not None
    ]
    leader = min(leading)[1] if leading else first
    urls = sorted(candidate.url for candidate in candidates.values() if candidate.url)
    successor = leader if spread_by is None else first
    return Assignment(leader, candidates[leader].url, tuple(urls), successor)


def _rank(name: str, url: str, member_id: str) -> tuple[bytes, str]:
    return hashlib.sha256(f"{name} {url}".encode()).digest(), member_id


@dataclass(frozen=True, slots=True)
class Lease:
    """Tells how long a member can be sure that no other one leads. Times are of one clock, in seconds.

    Another is elected only in a generation that this member did not join, or joined without claiming to lead;
    and the coordinator removes members only when it has received nothing from them for the session time-out,
    or when a rebalance has lasted for the rebalance time-out without them. It receives a request later than
    it was sent, so both limits are certainly in the future: the first for requests to which it has responded,
    the second for those to which it responded that no rebalance is in progress.
    """

    heard: float = -inf
    """The time at which the last request was sent that restarted the session time-out."""
    settled: float = -inf
    """The time of the last request that found no rebalance in progress after the assignment."""

    def end(self, options: GroupOptions) -> float:
        return min(self.heard + options.session_timeout_s, self.settled + options.rebalance_timeout_s)


@dataclass(frozen=True, slots=True)
class Standing:
    """A membership, and the time at which it can't be relied on any more."""

    membership: Membership = NOT_A_MEMBER
    end: float = -inf

    def at(self, now: float) -> Membership:
        return self.membership if now < self.end else NOT_A_MEMBER


def _decoded(data: bytes) -> Mapping[str, Any]:
    try:
        decoded = json.loads(data)
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}
