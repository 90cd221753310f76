"""Logs the failures of periodic jobs: when they begin, once a minute while they last, and when they end."""

import logging
from collections.abc import Callable, Mapping

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.troubles import Lasting
from sparkmirror.periodic.flow_log import FlowLog

Listener = Callable[[Mapping[str, str]], None]
"""Gets the last error of each job whose failure does not pass by itself, whenever that changes."""


class JobFailures:
    """Records the failures of one thread's jobs. Retriable errors are not logged again.

    Then a cluster is usually unreachable, which `status.cluster_watch` logs once a minute for all jobs.
    """

    def __init__(self, log: FlowLog) -> None:
        self._log = log
        self._failing: dict[str, Lasting] = {}
        self._errors: dict[str, str] = {}
        self._lasting: dict[str, str] = {}
        self.listener: Listener = lambda _: None

    @property
    def now(self) -> str | None:
        """The last error of a job that fails, None while all work. Safe in any thread."""
        return next(iter(self._errors.copy().values()), None)

    def failed(self, job: str, error: SparkmirrorError, now: float) -> None:
        lasting = self._failing.get(job)
        self.note(job, str(error))
        if lasting is None:
            lasting = self._failing[job] = Lasting.since(now)
            self._log.warning("%s failed: %s", job, error)
        elif lasting.is_due(now):
            level = logging.DEBUG if error.retriable else logging.WARNING
            self._log.log(level, "%s has failed for %.0f s: %s", job, now - lasting.began_at, error)
        self._tell(job, str(error) if lasting.is_trouble(error, now) else None)

    def note(self, job: str, error: str) -> None:
        """Record a failure that is logged elsewhere."""
        self._errors[job] = f"{job} failed: {error}"

    def not_begun(self, name: str, error: SparkmirrorError | None) -> None:
        """Tell the listener why a thread can't begin, None when it has begun; that is logged elsewhere."""
        self._tell(name, None if error is None or error.retriable else str(error))

    def bug(self, job: str, error: Exception) -> None:
        """Record an unexpected failure; it is logged elsewhere."""
        self.note(job, repr(error))
        self._tell(job, repr(error))

    def _tell(self, job: str, error: str | None) -> None:
        before = self._lasting.get(job)
        if error is None:
            self._lasting.pop(job, None)
        else:
            self._lasting[job] = error
        if error != before:
            self.listener(self._lasting.copy())

    def worked(self, job: str, now: float) -> None:
        lasting = self._failing.pop(job, None)
        self._errors.pop(job, None)
        self._tell(job, None)
        if lasting is not None:
            self._log.info("%s works again after %.0f s", job, now - lasting.began_at)
