"""Starts a Spark session in the background when it is first needed."""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.metrics.readings import JvmReading
from sparkmirror.spark.jvm_samples import JvmSamples
from sparkmirror.spark.session import Session, default_master

_log = logging.getLogger(__name__)


class SparkOnDemand:
    """Safe in any thread."""

    def __init__(self, start: Callable[[], Session], log_file: Path, where: str) -> None:
        """`start` blocks, and raises SparkmirrorError; `where` is the master, as far as it is known."""
        self._start = start
        self._where = where
        self._log_file = log_file
        self._lock = threading.Lock()
        self._session: Future[Session] | None = None
        self._samples = JvmSamples(self._sample)
        self.page: str | None = None
        """The mirror's page, once it is served."""

    @classmethod
    def own(cls, spark: Mapping[str, str], slots: int, log_file: Path) -> Self:
        """`spark` are the user's `spark.*` properties; without a master it is local, with so many slots."""
        master = default_master(slots)
        where = spark.get("spark.master", master)
        return cls(lambda: Session.start(master, spark, log_file), log_file, where)

    @classmethod
    def beside(cls, spark: Any, slots: int | None) -> Self:
        """Use the Spark of a user's SparkSession, `spark`, as `Session.beside` does."""
        return cls(lambda: Session.beside(spark, slots), Path(os.devnull), "the session of this program")

    def session(self) -> "Future[Session]":
        """Return a future session, whose result raises SparkmirrorError when Spark doesn't come up."""
        return self._started(lambda _: None)

    def stand_by(self) -> None:
        """Start a session, and run its first job, before one is needed."""
        self._started(_warm_up)

    def _started(self, then: Callable[[Session], None]) -> "Future[Session]":
        with self._lock:
            if self._session is None:
                _log.info("starting Spark on %s …", _shown(self._where))
                self._session = Future()
                starting = threading.Thread(
                    target=self._run, args=(self._session, then), name="start Spark", daemon=True
                )
                starting.start()
            return self._session

    @property
    def is_starting(self) -> bool:
        session = self._session
        return session is not None and not session.done()

    @property
    def failure(self) -> SparkmirrorError | None:
        """Why there is no session although one was asked for."""
        session = self._session
        if session is None or not session.done() or session.cancelled():
            return None
        error = session.exception()
        if isinstance(error, SparkmirrorError):
            return error
        if session.result().is_alive:
            return None
        return SparkmirrorError(session.result().end_reason)

    def jvm(self) -> JvmReading | None:
        """The driver's JVM as of some seconds ago; None while it does not run, or does not answer."""
        return self._samples.get()

    def _sample(self) -> JvmReading | None:
        session = self._session
        if session is None or not session.done() or session.cancelled() or session.exception() is not None:
            return None
        return session.result().jvm_reading()

    def cancel_start(self) -> None:
        """Stop waiting for a session that is just starting: it ends as soon as it runs."""
        if self._session is not None:
            self._session.cancel()

    def close(self) -> None:
        """End the session if there is one."""
        session = self._session
        if session is not None and not session.cancel() and session.exception() is None:
            session.result().close()

    def _run(self, session: "Future[Session]", then: Callable[[Session], None]) -> None:
        started_at = time.monotonic()
        try:
            made = self._start()
            made.page = self.page
        except SparkmirrorError as error:
            _fail(session, error)
        except OSError as error:
            _fail(session, SparkmirrorError(f"Spark did not start: {error}; log: {self._log_file}"))
        except Exception as error:  # noqa: BLE001 - whatever it is, no thread may wait for ever
            _fail(session, SparkmirrorError(f"Spark did not start: {error!r}"))
        else:
            if not session.set_running_or_notify_cancel():
                made.close()
                return
            took_s, master = time.monotonic() - started_at, _shown(made.master)
            _log.info("Spark runs on %s after %.1f s; %s", master, took_s, made.log_hint)
            session.set_result(made)
            then(made)


def _fail(session: "Future[Session]", error: SparkmirrorError) -> None:
    if session.set_running_or_notify_cancel():
        session.set_exception(error)


def _shown(master: str) -> str:
    """Leave out how often a local master's tasks may fail: by default that has no limit."""
    return re.sub(r"^local\[(\w+|\*),\d+\]$", r"local[\1]", master)


def _warm_up(session: Session) -> None:
    try:
        session.warm_up()
    except Exception as error:  # noqa: BLE001 - the first copy job reports it
        _log.debug("Spark's first job failed: %s", error)
