"""Follows the progress topic for a task: whether its copy job may still run, and its rate limits."""

import logging
import threading
import time
from collections.abc import Callable

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.task.outcomes import EndReason
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.policies.rate_limits import RateLimits
from sparkmirror.storage.progress import FlowLimits, JobEpoch, StateLost, parse_order

_log = logging.getLogger(__name__)

_POLL_S = 0.5
_OUT_OF_TOUCH_S = 30.0
"""A task continues this long without a response: longer than a broker's restart, shorter than an outage."""


class JobWatch:
    """Calls `on_end` once, and `on_limits` and `on_loss` for each order since the announcement.

    All calls come from its own thread.
    """

    def __init__(
        self,
        plan: TaskPlan,
        on_end: Callable[[EndReason], None],
        on_limits: Callable[[RateLimits], None] | None = None,
        on_loss: Callable[[], None] | None = None,
    ) -> None:
        self._plan = plan
        self._on_end = on_end
        self._on_limits = on_limits
        self._on_loss = on_loss
        self._stopped = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def await_answer(self) -> None:
        """Wait until the progress topic has answered once, or `on_end` was called."""
        self._answered.wait()

    def _run(self) -> None:
        reason: EndReason | None = EndReason.OUT_OF_TOUCH  # also after a bug in this thread
        state = self._plan.state
        tail = TopicTail(state.connection, state.progress_topic, self._plan.announced_at)
        try:
            reason = self._follow(tail)
        finally:
            if reason is not None:
                self._on_end(reason)
            self._answered.set()
            tail.close()

    def _follow(self, tail: TopicTail) -> EndReason | None:
        """The reason to end the task; None when it has ended by itself."""
        confirmed_at = time.monotonic()
        while not self._stopped.is_set():
            try:
                reason = self._read(tail)
            except SparkmirrorError as error:
                _log.warning("the copy job can't be confirmed: %s", error)
                if time.monotonic() - confirmed_at > _OUT_OF_TOUCH_S:
                    return EndReason.OUT_OF_TOUCH
                self._stopped.wait(_POLL_S)
                continue
            if reason is not None:
                return reason
            confirmed_at = time.monotonic()
            self._answered.set()
        return None

    def _read(self, tail: TopicTail) -> EndReason | None:
        plan = self._plan
        own = JobEpoch(plan.connector, plan.job_epoch, driver=plan.driver)
        for record in tail.poll(_POLL_S):
            match parse_order(record):
                case JobEpoch() as job_epoch if job_epoch.ends(own):
                    same = job_epoch.number == own.number and job_epoch.stopped
                    return EndReason.STOPPED if same else EndReason.SUPERSEDED
                case FlowLimits(plan.connector, limits) if self._on_limits is not None:
                    self._on_limits(limits)
                case StateLost(plan.connector) if self._on_loss is not None:
                    self._on_loss()
        return None
