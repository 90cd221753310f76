"""Requests for which a right is missing: named once, and sent again less and less often."""

import time
from collections.abc import Callable
from typing import Final

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.periodic.flow_log import FlowLog

DENIED_AGAIN: Final = Backoff(30.0, 3600.0)
"""Owners of clusters find each denied request in an audit log."""


class Denials:
    """A periodic action that may lack a right. Has one owner; `now` is safe in any thread."""

    def __init__(
        self,
        log: FlowLog,
        name: str,
        advice: str = "",
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[AuthorizationError | None], None] = lambda _: None,
    ) -> None:
        """`advice` follows each error in the log. `tell` gets the error when it changes, None without one."""
        self._tell = tell
        self._log = log
        self._name = name
        self._advice = advice
        self._clock = clock
        self._count = 0
        self._again_at = 0.0
        self.now: str | None = None
        """The last error, while the right is missing."""

    def attempt(self, action: Callable[[], None]) -> bool:
        """Run the action, unless that was denied a while ago; whether it worked. Raises what it raises."""
        if self.now is not None and self._clock() < self._again_at:
            return False
        try:
            action()
        except AuthorizationError as error:
            self._note(error)
            return False
        if self.now is not None:
            self._log.info("%s works again", self._name)
            self._tell(None)
        self._count, self.now = 0, None
        return True

    def _note(self, denied: AuthorizationError) -> None:
        error = f"{denied}{self._advice}"
        self._count += 1
        self._again_at = self._clock() + DENIED_AGAIN.delay_s(self._count, 0.5)
        if error != self.now:
            self._log.warning("%s failed, and is tried again later: %s", self._name, error)
            self._tell(denied)
        self.now = error
