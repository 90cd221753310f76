"""A task's eye on the progress topic: whether its generation is still the one that may run."""

import logging
import threading
import time
from collections.abc import Callable

from sparkmirror.domain.copy_plan import TaskPlan
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.engine.outcomes import EndReason
from sparkmirror.kafka.topic_log import TopicTail
from sparkmirror.storage.progress import parse_generation

_log = logging.getLogger(__name__)

_POLL_S = 0.5
_CONFIRM_INTERVAL_S = 5.0
_OUT_OF_TOUCH_S = 30.0
"""How long a task goes on without being able to ask: a broker's restart fits in, a cut network does not."""


class GenerationWatch:
    """Calls `on_end` once, from its own thread."""

    def __init__(self, plan: TaskPlan, on_end: Callable[[EndReason], None]) -> None:
        self._plan = plan
        self._on_end = on_end
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="generation-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        confirmed_at = time.monotonic()
        tail: TopicTail | None = None
        while not self._stopped.is_set():
            try:
                if tail is None:
                    state = self._plan.state
                    tail = TopicTail(state.connection, state.progress_topic, self._plan.announced_at)
                reason = self._read(tail)
                if time.monotonic() - confirmed_at > _CONFIRM_INTERVAL_S:
                    # A poll that brings nothing proves nothing: its answer might never come.
                    tail.end_offset()
                    confirmed_at = time.monotonic()
            except SparkmirrorError as error:
                _log.warning("the generation can't be confirmed: %s", error)
                self._stopped.wait(_POLL_S)
                reason = None
            if reason is None and time.monotonic() - confirmed_at > _OUT_OF_TOUCH_S:
                reason = EndReason.OUT_OF_TOUCH
            if reason is not None:
                self._on_end(reason)
                break
        if tail is not None:
            tail.close()

    def _read(self, tail: TopicTail) -> EndReason | None:
        plan = self._plan
        for record in tail.poll(_POLL_S):
            generation = parse_generation(record)
            if generation is not None and generation.ends(plan.connector, plan.generation):
                return EndReason.STOPPED if generation.number == plan.generation else EndReason.SUPERSEDED
        return None
