"""Decides which of the processes with the same file runs a flow.

For every flow the processes form a group on its target, with the name that Connect gives it. The leader runs
the flow; the others stand by and take over. By default the leader so far stays. With
`dedicated.mode.enable.internal.rest=true` flows spread over the processes (KIP-710): the leader follows from
the names of the flow and the processes, and flows move only where a process has come or gone.

Unless flows are shared, a flow runs without election where the group refuses the process or can't be
reached.
"""

import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from sparkmirror.domain.errors import FlowError, KafkaError, SparkmirrorError, SupersededError
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.leader_election import GroupOptions
from sparkmirror.kafka.groups.membership_requests import GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL
from sparkmirror.kafka.groups.worker_group import WorkerGroup
from sparkmirror.machine import machine_name
from sparkmirror.metrics.looks import ConnectorKind, ConnectorLook, StandingLook, Standstill
from sparkmirror.mirror.flow_runs import FlowRun, end_flows
from sparkmirror.periodic.flow_log import LogOnce, flow_log
from sparkmirror.settings.configured import ConfiguredFlow

_HELD_BY_OTHERS: Final = frozenset({INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED})
"""Refusals that mean that another program runs the flow."""
UNREACHED_S: Final = 2.0
"""The time after which a flow runs although its group can't be reached."""
_USUAL_NAME: Final = "MirrorSourceConnector"
_STILL_JOINING_S: Final = 5.0
_TOLD_AFTER_S: Final = 1.0
"""New coordinators refuse requests for less time than that."""
_NO_STANDBY: Final = "a second process with this file would take the flow over instead of standing by"


class ElectedFlows:
    """The flows of a file. One owner, who calls `check` about each second."""

    def __init__(
        self, flows: Sequence[ConfiguredFlow], make: Callable[[ConfiguredFlow], FlowRun], *, shared: bool
    ) -> None:
        name = f"{machine_name()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._flows = [
            ElectedFlow(
                flow,
                make,
                WorkerGroup(flow.worker_client, options, name, lambda _: None),
                is_shared=shared,
            )
            for flow, options in zip(flows, election_groups(flows, spreads=shared), strict=True)
        ]

    def start(self) -> None:
        for flow in self._flows:
            flow.group.start()

    def check(self) -> None:
        """Start and stop flows as this process leads them.

        Raises SparkmirrorError when a flow can't run before an operator changes something.
        """
        for flow in self._flows:
            flow.check(time.monotonic())

    @property
    def runs(self) -> Mapping[Flow, FlowRun]:
        """The flows that this process runs. Safe in any thread."""
        return {flow.of.flow: run for flow in self._flows if (run := flow.run) is not None}

    @property
    def undecided(self) -> Sequence[ConfiguredFlow]:
        """The flows of which it is not known yet who runs them. Safe in any thread."""
        return [flow.of for flow in self._flows if not flow.is_decided]

    def looks(self) -> list[ConnectorLook]:
        """Return what is known of the flows that do not run here. Safe in any thread."""
        return [look for flow in self._flows if flow.run is None for look in flow.standing()]

    def begin_again(self, flows: Collection[Flow]) -> None:
        """Run these flows again, whose runs have ended."""
        for flow in self._flows:
            if flow.of.flow in flows:
                flow.run = None  # the next check starts another one

    @property
    def joining(self) -> bool:
        """Whether a decision comes within seconds. Safe in any thread."""
        return any(not flow.is_decided and flow.group.trouble is None for flow in self._flows)

    def stop(self) -> None:
        """End all runs in order, then leave the groups, so that other processes take over."""
        end_flows(self.runs.values())
        leaving = [threading.Thread(target=flow.group.leave, daemon=True) for flow in self._flows]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join()


def election_groups(flows: Sequence[ConfiguredFlow], *, spreads: bool) -> Sequence[GroupOptions]:
    """Name a group for each flow: flows into one cluster may share `group.id`, files a flow by name."""
    in_common = Counter((flow.flow.target, flow.worker.group_id) for flow in flows)

    def group_of(flow: ConfiguredFlow) -> GroupOptions:
        group = flow.worker.group(spreads=spreads)
        own: list[str] = [] if in_common[flow.flow.target, group.group_id] == 1 else [flow.flow.source]
        if flow.source is not None and flow.source.name != _USUAL_NAME:
            own.append(flow.source.name)
        return group._replace(group_id="-".join([group.group_id, *own]))

    return [group_of(flow) for flow in flows]


class ElectedFlow:
    """Runs a flow while its group has elected this process."""

    def __init__(
        self,
        of: ConfiguredFlow,
        make: Callable[[ConfiguredFlow], FlowRun],
        group: WorkerGroup,
        *,
        is_shared: bool,
    ) -> None:
        """`is_shared`: a process that can't take part ends, instead of running the flow without election."""
        self.of = of
        self.group = group
        self.run: FlowRun | None = None
        self.is_decided = False
        """Whether it runs here, or another process is known to run it."""
        self._make = make
        self._is_shared = is_shared
        self._log = flow_log(__name__, of.flow)
        self._troubles = LogOnce(self._log)
        self._standings = LogOnce(self._log, logging.INFO)
        self._began: float | None = None
        self._unreached_since: float | None = None
        self._is_unelected = False
        """Whether this process runs the flow although no election says so."""
        self._has_lost = False
        """Whether another process took the flow over meanwhile."""

    def check(self, now: float) -> None:
        """Raises SparkmirrorError when the flow can't run here before an operator changes something."""
        self._check_run()
        leads = self._leads(now)
        self.is_decided = self.is_decided or leads or self.group.membership.leader_url is not None
        if leads and self.run is None:
            self._log.info("runs on this node")
            self.run = self._make(self.of)
            self.run.start(
                lambda: self._is_unelected or self.group.membership.is_leader,
                lambda: self.group.membership.is_leader,
            )
        elif not leads and self.run is not None:
            self._log.info("does not run on this node any more")
            ended, self.run = self.run, None
            end_flows([ended])

    def standing(self) -> Sequence[StandingLook]:
        """Say why it does not run here: another process runs it, or that is not known yet."""
        leader, trouble = self.group.membership.leader_url, self.group.trouble
        if leader is not None and not self.group.membership.is_leader:
            standstill: Standstill = "standby"
            waits_for = _stands_by(leader)
        else:
            standstill = "starting"
            waits_for = "the election" if trouble is None else f"the election: {_told(trouble)}"
        kind: ConnectorKind = "heartbeat" if self.of.source is None else "source"
        name = self.of.heartbeat.name if self.of.source is None else self.of.source.name
        return [StandingLook(self.of.flow, name, kind, None, standstill, waits_for)]

    def _check_run(self) -> None:
        failure = None if self.run is None else self.run.failure
        if isinstance(failure, SupersededError) and self.group.failure is None:
            self._has_lost, self._is_unelected = True, False
        elif failure is not None:
            raise FlowError(self.of.flow, failure) from failure

    def _leads(self, now: float) -> bool:
        failure = self.group.failure
        if failure is not None:
            return self._leads_without(failure)
        trouble, membership = self.group.trouble, self.group.membership
        if trouble is None:
            self._unreached_since = None
        elif self._unreached_since is None:
            self._unreached_since = now
        lasts = self._unreached_since is not None and now - self._unreached_since >= _TOLD_AFTER_S
        self._troubles.log([_told(trouble)] if trouble is not None and lasts else [])
        if membership.leader_url is not None:
            self._has_lost = self._is_unelected = False
            self._standings.log([] if membership.is_leader else [_stands_by(membership.leader_url)])
            return membership.is_leader
        if trouble is not None and not self._is_shared and not _is_held(trouble):
            self._leads_unreached(now)
        self._say_that_it_waits(now)
        return self._is_unelected

    def _leads_without(self, failure: SparkmirrorError) -> bool:
        """The group has refused this process for good."""
        if self._is_shared or _is_held(failure):
            raise FlowError(self.of.flow, failure) from failure
        if not self._is_unelected:
            level = logging.INFO if self.of.source is None else logging.WARNING
            self._log.log(level, "%s; runs without election: %s", failure, _NO_STANDBY)
            self._is_unelected = True
        return True

    def _leads_unreached(self, now: float) -> None:
        """Keep the flow, unless the membership ended before any trouble: the process was frozen."""
        since = now if self._unreached_since is None else self._unreached_since
        keeps = self.run is not None and since < now
        if self._has_lost or self._is_unelected or not (keeps or now - since >= UNREACHED_S):
            return
        self._log.warning("no election for %.0f s; runs without: %s", now - since, _NO_STANDBY)
        self._is_unelected = True

    def _say_that_it_waits(self, now: float) -> None:
        self._began = now if self._began is None else self._began
        if self.is_decided or self.group.trouble is not None or now - self._began < _STILL_JOINING_S:
            return
        session_s = self.of.worker.session_timeout_s
        waits = f"waits: a killed process counts as one that runs until its session of {session_s:g} s ends"
        self._standings.log([waits])


def _is_held(error: SparkmirrorError) -> bool:
    return isinstance(error, KafkaError) and error.code in _HELD_BY_OTHERS


def _told(trouble: SparkmirrorError) -> str:
    return str(trouble) if _is_held(trouble) else f"its group can't be reached: {trouble}"


def _stands_by(leader: str) -> str:
    host, pid, _ = leader.rsplit(":", 2)
    return f"stands by: process {pid} on {host} runs this flow, and this one takes over when that is gone"
