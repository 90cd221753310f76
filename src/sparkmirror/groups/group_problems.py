"""Logs the problems of consumer groups, and passes those that last to the flow's troubles."""

import logging
from collections.abc import Mapping
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.storage.troubles import Troubles

_REMEDIES: Final = {
    TroubleWord.BLOCKED: "correct the plug-in",
    TroubleWord.NOT_READ: "or leave the group out (groups.exclude)",
    TroubleWord.NOT_COMMITTED: "or leave the group out (groups.exclude)",
}
_LOGGED_MAX: Final = 20
"""Groups that one run of a job names in the log."""


class GroupProblems:
    """Logs a group's problem once while it stays the same. Not thread-safe."""

    def __init__(self, log: FlowLog, troubles: Troubles) -> None:
        self._log = log
        self._troubles = troubles
        self._last: dict[GroupId, str] = {}
        self._erring: dict[TroubleWord, frozenset[GroupId]] = {}
        self._logged = 0

    def log(self, group: GroupId, what: SparkmirrorError | str, level: int = logging.WARNING) -> None:
        """Log a problem if it is not the group's last one; `log_rest` counts those beyond a number."""
        if self._last.get(group) == str(what):
            return
        self._last[group] = str(what)
        self._logged += 1
        if self._logged <= _LOGGED_MAX:
            self._log.log(level, "group %s: %s", group, what)

    def forget(self, group: GroupId) -> None:
        """Note that the group has no problem now."""
        self._last.pop(group, None)

    def log_rest(self) -> None:
        """End a run of a job. A broker that is down affects thousands of groups at once."""
        if self._logged > _LOGGED_MAX:
            self._log.warning("and %d more groups; `groups explain` shows why", self._logged - _LOGGED_MAX)
        self._logged = 0

    def tell(self, word: TroubleWord, errors: Mapping[GroupId, SparkmirrorError]) -> None:
        """Tell errors that last: one that may pass is a trouble when it occurs twice in a row."""
        before, self._erring[word] = self._erring.get(word, frozenset()), frozenset(errors)
        self._troubles.tell(
            word,
            [
                Trouble(Cause.of_error(word, Subject.GROUP, group, error, _REMEDIES[word]), group)
                for group, error in errors.items()
                if not error.retriable or group in before
            ],
            is_logged=True,
        )
