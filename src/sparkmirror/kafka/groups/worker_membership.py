"""Takes part in a worker group as one member: joins, heartbeats, takes part in the leader election, leaves.

One thread does everything, and sends one request at a time with one exception: while JoinGroup or SyncGroup
waits for other members, heartbeats go over a second connection, so that a leader need not step down because
others are slow, or gone.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from math import inf
from typing import Final

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError, RetriableError, SparkmirrorError
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.leader_election import (
    NOT_A_MEMBER,
    NOT_IN_A_GENERATION,
    Assignment,
    Candidate,
    GroupOptions,
    Lease,
    Membership,
    Standing,
    elect,
)
from sparkmirror.domain.network import InterruptedWaitError
from sparkmirror.kafka.groups import membership_requests as group_wire
from sparkmirror.kafka.groups.coordinator_connections import CoordinatorConnections
from sparkmirror.kafka.groups.membership_requests import (
    FENCED_INSTANCE_ID,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    HeldGroup,
    Joined,
    MemberIdentity,
    group_error,
)
from sparkmirror.kafka.net.interruptible import InterruptibleConnection
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import (
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)

_JOIN_EXTRA_S: Final = 5.0
"""The time after the rebalance time-out that JoinGroup's response may take, as in Java's clients."""
_IMMEDIATE_RETRIES_MAX: Final = 3
"""The number of times in a row that joining may restart without a pause."""

_NO_MEMBER: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID})
_JOIN_AGAIN: Final = frozenset({REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION})
_SESSION_RENEWED: Final = frozenset({NONE, REBALANCE_IN_PROGRESS})


class GroupMember:
    """`run` once, in a thread of its own; `stop` ends it. Properties and `stop` are safe in any thread."""

    def __init__(
        self,
        settings: ConnectionSettings,
        options: GroupOptions,
        url: str,
        on_change: Callable[[Membership], None],
    ) -> None:
        """Take the same arguments as `WorkerGroup`."""
        self._settings = settings
        self._options = options
        self._url = url
        self._on_change = on_change
        self._network = network_of(settings)
        self._interruption = self._network.interruption()
        self._is_leaving = False
        self._connections = CoordinatorConnections(
            settings, options, self._pause_for, self._await_response, self._connect_within_s
        )
        # the coordinator's view
        self._member_id = ""
        self._generation = NOT_IN_A_GENERATION
        self._is_settled = False
        # its consequences
        self._outcome = NOT_A_MEMBER
        self._leads_since = NOT_IN_A_GENERATION
        self._lease = Lease()
        self._standing = Standing()
        self._reported = NOT_A_MEMBER
        self.failure: SparkmirrorError | None = None
        """The error that ended the membership for good."""
        self.trouble: SparkmirrorError | None = None
        """The error of the last attempt to reach the coordinator, while it is retried."""
        self._held = HeldGroup(options)
        self._next_beat = 0.0
        self._others_decide = False

    @property
    def membership(self) -> Membership:
        """Return the membership: NOT_A_MEMBER as soon as the coordinator may have removed this node.

        The clock decides at each call, so that a node that was frozen, or is cut off, knows before the others
        elect another leader.
        """
        return NOT_A_MEMBER if self._is_leaving else self._standing.at(self._now())

    @property
    def coordinator(self) -> Address:
        """Return the address of the group's last known coordinator."""
        return self._connections.address

    def stop(self) -> None:
        """Let `run` leave the group and return."""
        if not self._is_leaving:
            self._is_leaving = True
            self._interruption.set()

    def close(self) -> None:
        """Close the connections of a member whose `run` was never called."""
        self._interruption.close()

    def run(self) -> None:
        """Keep the membership until `stop`, or an error that will not pass."""
        with closing(self._interruption):
            try:
                self._take_part()
            except InterruptedWaitError:
                if self._member_id:
                    self._connections.leave(self._identity)
            except SparkmirrorError as error:
                self._fail(error)
            except Exception as error:  # noqa: BLE001 - a node that seems to wait would be worse than one that fails
                failure = SparkmirrorError(f"group {self._options.group_id}: {error!r}")
                failure.__cause__ = error
                self._fail(failure)
            finally:
                self._connections.close()

    def _take_part(self) -> None:
        backoff = Backoff(self._settings.retry_backoff_s, self._settings.retry_backoff_max_s)
        failures = turns = 0
        while True:
            try:
                turns = 0 if self._turn() else turns + 1
                failures = max(0, turns - _IMMEDIATE_RETRIES_MAX)
                self.trouble = None
            except (RetriableError, AuthenticationError) as error:  # a login may be mended
                self.trouble = error
                self._connections.close()
                failures += 1
            if failures:
                self._pause(backoff.delay_s(failures, random.random()))

    def _turn(self) -> bool:
        """Take the next step of joining, or send a heartbeat; whether it worked."""
        coordinator = self._connections.main()
        return self._beat(coordinator) if self._is_settled else self._join(coordinator)

    def _fail(self, failure: SparkmirrorError) -> None:
        self.failure = failure
        self._forget()
        self._report()

    # joining

    def _join(self, coordinator: InterruptibleConnection) -> bool:
        own = self._candidate()
        if self._generation == NOT_IN_A_GENERATION:
            self._beat_begins()  # there is no session yet that a heartbeat could prolong
        with self._beating():
            joined = group_wire.join(
                coordinator,
                self._options,
                self._member_id,
                own.encode(),
                self._options.rebalance_timeout_s + _JOIN_EXTRA_S,
            )
        if joined.code == MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return True
        if joined.code != NONE:
            return self._refused(joined.code, "JoinGroup", coordinator)
        self._held.end()
        self._member_id, self._generation = joined.member_id, joined.generation
        return self._sync(coordinator, joined)

    def _candidate(self) -> Candidate:
        """A member that can't be sure to lead now does not claim it, and gives up a former leadership."""
        if self.membership.is_leader:
            return Candidate(self._url, self._leads_since)
        if self._outcome.is_leader:
            self._outcome = replace(self._outcome, is_leader=False, leader_url=None)
            self._renew(self._lease)
        return Candidate(self._url)

    def _sync(self, coordinator: InterruptibleConnection, joined: Joined) -> bool:
        sent = self._now()
        with self._beating():
            synced = group_wire.sync(
                coordinator,
                self._identity,
                self._assignments(joined),
                self._options.rebalance_timeout_s + _JOIN_EXTRA_S,
            )
        if synced.code != NONE:
            return self._refused(synced.code, "SyncGroup", coordinator)
        assignment = Assignment.decode(synced.assignment)
        self._take(assignment)
        self._is_settled = not self._gives_way(assignment)
        self._renew(replace(self._lease, settled=sent))
        self._connections.close_aside()
        self._next_beat = 0.0  # only a response to a heartbeat proves that the session has begun
        return True

    def _assignments(self, joined: Joined) -> Mapping[str, bytes]:
        if not joined.is_leader:
            return {}
        candidates = {name: Candidate.decode(metadata) for name, metadata in joined.candidates.items()}
        spread_by = self._options.group_id if self._options.spreads else None
        return dict.fromkeys(candidates, elect(candidates, joined.member_id, spread_by).encode())

    def _take(self, assignment: Assignment | None) -> None:
        led = self._outcome.is_leader
        if assignment is None:
            self._outcome = replace(NOT_A_MEMBER, generation=self._generation, member_id=self._member_id)
        else:
            self._outcome = assignment.membership(self._generation, self._member_id)
        if self._outcome.is_leader and not led:
            self._leads_since = self._generation

    def _gives_way(self, assignment: Assignment | None) -> bool:
        """Whether another is to lead: it will when this member has joined again without claiming to lead."""
        if assignment is None or not self._outcome.is_leader or assignment.successor == self._member_id:
            return False
        self._outcome = replace(self._outcome, is_leader=False, leader_url=None)
        return True

    # staying

    def _beat(self, coordinator: InterruptibleConnection) -> bool:
        if self._pause(self._next_beat - self._now(), coordinator.fileno()):
            coordinator.check_idle()
        sent = self._beat_begins()
        code = group_wire.heartbeat(coordinator, self._identity, self._connections.response_timeout_s)
        if code in _SESSION_RENEWED:
            settled = sent if code == NONE else self._lease.settled
            self._renew(Lease(sent, settled))
        return code == NONE or self._refused(code, "Heartbeat", coordinator)

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """The response to a request of this block comes when other members are ready."""
        self._others_decide = True
        try:
            yield
        finally:
            self._others_decide = False

    def _await_response(self, fileno: int, left_s: float) -> None:
        if not self._others_decide:
            self._pause(left_s, fileno)
        elif (
            not self._pause(min(left_s, self._next_beat - self._now()), fileno)
            and self._now() >= self._next_beat
        ):
            self._beat_aside()

    def _beat_aside(self) -> None:
        """Raises RetriableError when the coordinator is gone, or has removed this member."""
        sent = self._beat_begins()
        aside = self._connections.aside()
        code = group_wire.heartbeat(aside, self._identity, self._connections.response_timeout_s)
        if code in _SESSION_RENEWED:
            # Not settled: only a member with this generation's assignment is.
            self._renew(replace(self._lease, heard=sent))
        elif code in _NO_MEMBER and self._generation != NOT_IN_A_GENERATION:
            self._forget()
            raise RetriableError(f"group {self._options.group_id}: removed while it joined", code)
        elif code not in _NO_MEMBER | _JOIN_AGAIN:
            raise group_error(code, self._options.group_id, "Heartbeat", settings=self._settings)

    def _beat_begins(self) -> float:
        sent = self._now()
        self._next_beat = sent + self._options.heartbeat_interval_s
        return sent

    # refusals

    def _refused(self, code: int, request: str, coordinator: InterruptibleConnection) -> bool:
        """False when joining again helps. Raises KafkaError for everything else."""
        self._is_settled = False
        if code in _NO_MEMBER and self._member_id:
            self._forget()
            return False
        if code in _JOIN_AGAIN:
            return False
        group_id, held_by = self._options.group_id, ""
        if code == INCONSISTENT_GROUP_PROTOCOL:
            timeout_s, cluster = self._connections.response_timeout_s, self._connections.cluster
            held_by = group_wire.members_of(coordinator, group_id, timeout_s, cluster)
            self._held.check(held_by, self._now())
        raise group_error(code, group_id, request, settings=self._settings, held_by=held_by)

    @property
    def _identity(self) -> MemberIdentity:
        return MemberIdentity(self._options.group_id, self._member_id, self._generation)

    def _forget(self) -> None:
        """Become no member: another node may lead from now on."""
        self._member_id, self._generation = "", NOT_IN_A_GENERATION
        self._is_settled = False
        self._outcome = NOT_A_MEMBER
        self._renew(Lease())

    def _renew(self, lease: Lease) -> None:
        self._lease = lease
        self._standing = Standing(self._outcome, lease.end(self._options))
        self._report()

    def _report(self) -> None:
        known = self.membership
        if known != self._reported and not self._is_leaving:
            self._reported = known
            self._on_change(known)

    # waiting

    def _pause_for(self, fileno: int, left_s: float) -> None:
        self._pause(left_s, fileno)

    def _pause(self, timeout_s: float, fileno: int | None = None) -> bool:
        """Whether the descriptor can be read; reports when the membership ends meanwhile."""
        deadline = self._network.time() + timeout_s
        while True:
            left_s = deadline - self._network.time()
            lease_left_s = self._standing.end - self._now()
            wait_s = left_s if self._reported == NOT_A_MEMBER else min(left_s, lease_left_s)
            is_ready = self._interruption.wait(wait_s, fileno)
            self._report()
            if is_ready or self._network.time() >= deadline:
                return is_ready

    def _connect_within_s(self) -> float:
        """The end of a membership must be reported in time."""
        return inf if self._reported == NOT_A_MEMBER else max(0.1, self._standing.end - self._now())

    def _now(self) -> float:
        """Return the time of a clock that continues while the machine is suspended, as sessions do."""
        return self._network.boottime()
