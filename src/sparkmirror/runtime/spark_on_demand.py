"""A Spark session that starts when it is first asked for, in the background."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.engine.session import Session

_log = logging.getLogger(__name__)


class SparkOnDemand:
    """Safe in any thread."""

    def __init__(self, start: Callable[[], Session]) -> None:
        """`start` raises SparkmirrorError when Spark doesn't come up."""
        self._start = start
        self._lock = threading.Lock()
        self._session: Future[Session] | None = None

    def session(self) -> "Future[Session]":
        with self._lock:
            if self._session is None:
                self._session = Future()
                threading.Thread(
                    target=self._run, args=(self._session,), name="start Spark", daemon=True
                ).start()
            return self._session

    @property
    def failure(self) -> str | None:
        """Why there is no session although one was asked for."""
        session = self._session
        if session is None or not session.done():
            return None
        error = session.exception()
        if error is not None:
            return str(error)
        made = session.result()
        return None if made.is_alive else f"Spark's JVM ended unexpectedly; its log is {made.log_file}"

    def close(self) -> None:
        """End the session if there is one; one that is just starting is waited for."""
        session = self._session
        if session is not None and session.exception() is None:
            session.result().close()

    def _run(self, session: "Future[Session]") -> None:
        began = time.monotonic()
        try:
            made = self._start()
        except SparkmirrorError as error:
            session.set_exception(error)
            return
        _log.info("Spark runs after %.1f s; its log is %s", time.monotonic() - began, made.log_file)
        session.set_result(made)
