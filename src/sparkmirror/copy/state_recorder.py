"""Writes records of one kind into a state topic, and logs when that fails and when it works again."""

import logging
import random
from collections.abc import Iterable, Mapping
from math import inf

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.troubles import Lasting
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.periodic.denials import DENIED_AGAIN

_log = logging.getLogger(__name__)

_DISPENSABLE = Backoff(1.0, 30.0)
"""The pauses between writes to topics that may be missing: positions and reports must not wait for them."""


class StateRecorder:
    """Writes one kind of record; consecutive failures are logged once."""

    def __init__(
        self, what: str, connection: ConnectionSettings, topic: str, timeout_s: float | None = None
    ) -> None:
        """A write ends within `timeout_s`, and is tried less and less often; None for what can't wait."""
        self._what = what
        self._writer = TopicWriter(connection)
        self._clock = network_of(connection).time
        self._topic = topic
        self._timeout_s = timeout_s
        self._failing: Lasting | None = None
        self._paused_until = -inf
        self._error: SparkmirrorError | None = None

    @property
    def lasting(self) -> Mapping[str, str]:
        """Why its topic can't be written to, if that does not pass by itself."""
        error, failing = self._error, self._failing
        if error is None or failing is None or not failing.is_trouble(error, self._clock()):
            return {}
        return {self._topic: str(error)}

    def write(self, records: Iterable[LogRecord]) -> bool:
        if self._clock() < self._paused_until:
            return False
        try:
            self._writer.write(self._topic, records, timeout_s=self._timeout_s)
        except SparkmirrorError as error:
            now = self._clock()
            if self._failing is None:
                self._failing = Lasting.since(now)
                _log.warning("%s can't be written: %s; retrying", self._what, error)
            self._error = error
            self._failing.failures += 1
            if self._timeout_s is not None:
                pause = DENIED_AGAIN if isinstance(error, AuthorizationError) else _DISPENSABLE
                self._paused_until = now + pause.delay_s(self._failing.failures, random.random())
            return False
        if self._failing is not None:
            _log.info("%s are written again", self._what)
        self._failing, self._error = None, None
        return True

    def close(self) -> None:
        self._writer.close()
