"""Asks a cluster of a flow every other second whether it answers, whatever else the flow does or waits for.

It logs when an outage begins, once a minute while it lasts, and when it ends.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ClusterChangedError, SparkmirrorError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.troubles import Lasting
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.metrics.looks import ClusterLook
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.storage.events import EventKind, Note, no_note

_INTERVAL_S: Final = 2.0
_TIMEOUT_S: Final = 5.0
_ACTION: Final = "a request for its brokers"


class ClusterWatch:
    """`thread` asks; everything else is safe in any thread."""

    def __init__(
        self,
        flow: Flow,
        cluster: Alias,
        settings: ConnectionSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        ask: Callable[[], object] | None = None,
        note: Note = no_note,
    ) -> None:
        """`ask` replaces the request; it raises SparkmirrorError when the cluster does not answer.

        `note` gets the events.
        """
        self._note = note
        self.cluster = cluster
        self._log = flow_log(__name__, flow)
        self._clock = clock
        soon = replace(settings, request_timeout_s=min(_TIMEOUT_S, settings.request_timeout_s))
        client = Cluster(soon)
        self._ask = ask or (lambda: client.brokers(_ACTION))
        self._outage: Lasting | None = None
        self._error: str | None = None
        self.changed: str | None = None
        """Why an operator must act: another cluster answers than the one that is meant."""
        self.is_up: bool | None = None
        """Whether a broker answered the last request, and a login was accepted; None before the first."""
        self.thread = PeriodicThread(f"watch of {self.cluster}", self._log, self._jobs, client.close)

    def look(self) -> ClusterLook:
        outage, is_up = self._outage, self.is_up
        if is_up is not False or outage is None:
            return ClusterLook(self.cluster, is_up)
        return ClusterLook(self.cluster, is_up, self._clock() - outage.began_at, self._error)

    def _jobs(self) -> Iterable[Job]:
        return (Job(f"ask {self.cluster}", _INTERVAL_S, self.ask),)

    def ask(self) -> None:
        """Ask once; `thread` calls it."""
        try:
            self._ask()
        except SparkmirrorError as error:
            self._error = str(error)
            changed = self._error if isinstance(error, ClusterChangedError) else None
            if changed is not None and self.changed is None:
                self._outage = None  # what follows is another matter, which is said
            self.changed = changed
            self._note_outage(error, self._clock())
            self.is_up = False
            return
        self.is_up, self.changed = True, None
        if self._outage is not None:
            lasted_s = self._clock() - self._outage.began_at
            self._log.info("%s answers again after %.0f s", self.cluster, lasted_s)
            self._note(EventKind.CLUSTER_UP, f"answers again after {lasted_s:.0f} s", self.cluster)
            self._outage = None

    def _note_outage(self, error: SparkmirrorError, now: float) -> None:
        if self._outage is None:
            self._outage = Lasting.since(now)
            if self.changed is not None:
                self._log.error("%s", error)
                self._note(EventKind.INCIDENT, str(error), self.cluster)
                return
            self._log.warning("%s does not answer: %s; retrying", self.cluster, error)
            self._note(EventKind.CLUSTER_DOWN, f"does not answer: {error}", self.cluster)
        elif self._outage.is_due(now):
            lasted_s = now - self._outage.began_at
            self._log.warning("%s has not answered for %.0f s: %s", self.cluster, lasted_s, error)
