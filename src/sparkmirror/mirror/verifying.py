"""Compares both clusters of a running flow on request, one comparison at a time."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.metrics.looks import VerifiedRow, VerifyLook
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.verify.child_process import ComparisonProcess
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict, State, in_words, to_json, to_junit
from sparkmirror.verify.verification_run import ProgressDisplay, Verification, keep_verdict

_log: Final = logging.getLogger(__name__)

Verify = Callable[[ProgressDisplay], FlowVerdict]
"""A comparison. It blocks and raises SparkmirrorError."""
Keep = Callable[[FlowVerdict, float], None]


class Verifying:
    """Safe in any thread. The last result is kept here until the next comparison, or the connector's end."""

    def __init__(
        self,
        on: FlowWorker,
        connector: ConfiguredSource,
        *,
        verify: Verify | None = None,
        keep_result: Keep | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`verify` and `keep_result` replace the comparison, and what writes its result."""
        self._beside = ComparisonProcess()
        self._verify = verify or (lambda told: _verdict(on, connector, self._beside, told))
        self._keep = keep_result or (lambda found, at: keep_verdict(on, connector.name, found, at))
        self._clock = clock
        self._lock = threading.Lock()
        self._look: VerifyLook | None = None

    def start(self) -> bool:
        """False while a comparison runs."""
        with self._lock:
            if self._look is not None and self._look.ended_at is None:
                return False
            self._look = VerifyLook(self._clock(), progress="Reading both clusters …")
        threading.Thread(target=self._run, name="verify", daemon=True).start()
        return True

    def look(self) -> VerifyLook | None:
        """Return the state of the last comparison, or None before the first one."""
        return self._look

    def stop(self) -> None:
        """Stop for good, without waiting."""
        self._beside.stop()

    def print(self, text: str) -> None:
        """Called by the comparison, as `updates` is."""
        with self._lock:
            if self._look is not None:
                self._look = replace(self._look, progress=text)

    @contextmanager
    def updates(self) -> Iterator[Callable[[str], None]]:
        yield self.print

    def _run(self) -> None:
        try:
            verdict = self._verify(self)
            at = self._clock()
            ended = _ended(verdict)
            try:
                self._keep(verdict, at)
            except SparkmirrorError as error:
                _log.warning("the result of a comparison is not kept: %s", error)
        except SparkmirrorError as error:
            at, ended = self._clock(), VerifyLook(0.0, error=str(error))
        except Exception as error:  # noqa: BLE001 - a bug in it must not say for ever that it runs
            _log.exception("verify failed")
            at, ended = self._clock(), VerifyLook(0.0, error=f"an unexpected error: {error!r}")
        with self._lock:
            began_at = at if self._look is None else self._look.began_at
            self._look = replace(ended, began_at=began_at, ended_at=at)


def _verdict(
    on: FlowWorker, connector: ConfiguredSource, beside: ComparisonProcess, told: ProgressDisplay
) -> FlowVerdict:
    verification = Verification([(on, connector)])
    verification.compare(beside.compare, told)
    (verdict,) = verification.verdicts()
    return verdict


def _ended(verdict: FlowVerdict) -> VerifyLook:
    ordered = sorted(verdict.partitions, key=lambda it: (_ORDER.index(it.state), it.source))
    return VerifyLook(
        0.0,
        progress=in_words(verdict),
        is_equal=verdict.is_equal,
        rows=[_row(it) for it in ordered],
        json=to_json([verdict]),
        junit=to_junit([verdict]),
    )


_ORDER: Final = (State.DIFFERENT, State.UNREADABLE, State.NOT_BEGUN, State.EQUAL, State.PROMOTED)


def _row(found: PartitionVerdict) -> VerifiedRow:
    upto = None if found.upto is None else found.upto.source
    why = [text] if (text := found.promoted or found.not_begun) is not None else found.problems
    comparison = found.comparison
    return VerifiedRow(
        found.source, found.state.value, upto, comparison.equal, comparison.difference_count, why
    )
