"""Logs the failures of periodic jobs: when they begin, once a minute while they last, and when they end."""

import logging
from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.periodic.flow_log import FlowLog

REPEATED_EVERY_S: Final = 60.0


@dataclass(slots=True)
class Lasting:
    """Something that began at a time of any clock, in seconds, and that lasts."""

    began_at: float
    logged_at: float

    @classmethod
    def since(cls, now: float) -> "Lasting":
        return cls(now, now)

    def is_due(self, now: float) -> bool:
        """Whether to say that it still lasts; then that counts as said."""
        if now - self.logged_at < REPEATED_EVERY_S:
            return False
        self.logged_at = now
        return True


class JobFailures:
    """Records the failures of one thread's jobs. Retriable errors are not logged again.

    Then a cluster is usually unreachable, which `status.cluster_watch` logs once a minute for all jobs.
    """

    def __init__(self, log: FlowLog) -> None:
        self._log = log
        self._failing: dict[str, Lasting] = {}
        self._errors: dict[str, str] = {}

    @property
    def now(self) -> str | None:
        """The last error of a job that fails, None while all work. Safe in any thread."""
        return next(iter(self._errors.copy().values()), None)

    def failed(self, job: str, error: SparkmirrorError, now: float) -> None:
        lasting = self._failing.get(job)
        self.note(job, str(error))
        if lasting is None:
            self._failing[job] = Lasting.since(now)
            self._log.warning("%s failed: %s", job, error)
        elif lasting.is_due(now):
            level = logging.DEBUG if error.retriable else logging.WARNING
            self._log.log(level, "%s has failed for %.0f s: %s", job, now - lasting.began_at, error)

    def note(self, job: str, error: str) -> None:
        """Record a failure that is logged elsewhere."""
        self._errors[job] = f"{job} failed: {error}"

    def worked(self, job: str, now: float) -> None:
        lasting = self._failing.pop(job, None)
        self._errors.pop(job, None)
        if lasting is not None:
            self._log.info("%s works again after %.0f s", job, now - lasting.began_at)
