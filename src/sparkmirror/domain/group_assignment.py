"""Who leads a group of workers: what members tell each other, the choice, and how long it can be relied on.

Kafka's coordinator keeps the members and calls one of them the group's leader. That one chooses who leads the
work, by what members say of themselves in JoinGroup, and SyncGroup tells everybody the same. Metadata and
assignment are JSON with a `version`; unknown fields are for later versions, and passed over.
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
    """By Kafka's names for them; the coordinator accepts session time-outs within limits of its own."""

    group_id: str
    session_timeout_s: float = 10
    """Who is not heard for so long is no member any more."""
    heartbeat_interval_s: float = 3
    rebalance_timeout_s: float = 60
    """How long a rebalance waits for members that are heard and do not join."""
    spreads: bool = False
    """Whether the same nodes should not lead all groups: a node that comes may take over then."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What a node knows of its group."""

    generation: int
    """NOT_IN_A_GENERATION while not a member."""
    member_id: str
    is_leader: bool
    leader_url: str | None
    """None while nobody is known to lead."""
    members: tuple[str, ...]
    """Every node's URL, sorted."""


NOT_A_MEMBER: Final = Membership(NOT_IN_A_GENERATION, "", is_leader=False, leader_url=None, members=())


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a member says of itself: its metadata in JoinGroup."""

    url: str
    leads_since: int | None = None
    """The generation that made it the leader, which it is still; None for all others."""

    def encode(self) -> bytes:
        said = {"version": _VERSION, "url": self.url, "leads_since": self.leads_since}
        return json.dumps(said).encode()

    @classmethod
    def decode(cls, metadata: bytes) -> Self:
        """What can't be read is a member all the same, with an empty URL."""
        said = _decoded(metadata)
        url, since = said.get("url"), said.get("leads_since")
        return cls(url if isinstance(url, str) else "", since if type(since) is int else None)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What everybody is told. `leader` and `successor` are member ids."""

    leader: str
    leader_url: str
    members: tuple[str, ...]
    successor: str
    """Who is to lead when the leader has given way; the leader itself, as a rule."""

    def encode(self) -> bytes:
        told = {
            "version": _VERSION,
            "leader": self.leader,
            "leader_url": self.leader_url,
            "members": self.members,
            "successor": self.successor,
        }
        return json.dumps(told).encode()

    @classmethod
    def decode(cls, assignment: bytes) -> Self | None:
        """None when it says nothing: it can't be read, or Kafka's leader knew nothing of this member."""
        told = _decoded(assignment)
        leader, url, members = (told.get(key) for key in ("leader", "leader_url", "members"))
        successor = told.get("successor")
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


def assign(candidates: Mapping[str, Candidate], own_id: str, spread_by: str | None = None) -> Assignment:
    """The choice of the member that Kafka calls the leader: who leads already, else itself.

    Work that runs is not moved, though Kafka may call another member the leader from one generation to the
    next. Two that say they lead can't come from one group; the later one would be right.

    With `spread_by`, a group's name, it's the member that ranks first for that name: groups spread over the
    same nodes, and only those move that a node which came or went would lead (rendezvous hashing). Who leads
    already is asked to give way first: a member may be long in hearing of a choice, and sure to lead until
    then.
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
    """How long a member can be sure that nobody leads in its place. Times are of one clock, in seconds.

    Another is chosen only in a generation that this member did not join, or joined without saying that it
    leads; and the coordinator removes members only when it has not heard them for the session time-out, or
    when a rebalance has lasted for the rebalance time-out without them. It hears a request later than that
    was sent, so that both are known to be yet to come: the first for requests that it has answered, the
    second for those to which it answered that no rebalance goes on.
    """

    heard: float = -inf
    """When the last request was sent that made the coordinator wait for a whole session time-out again."""
    settled: float = -inf
    """When the last request was sent that found no rebalance going on after the assignment."""

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
