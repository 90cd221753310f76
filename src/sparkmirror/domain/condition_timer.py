"""Measures how long a condition has held without a break. Pure."""


class ConditionTimer:
    """Measures how long something holds. `now` is any clock's seconds."""

    def __init__(self) -> None:
        self._since: float | None = None

    def for_s(self, now: float, *, holds: bool = True) -> float:
        """The seconds since the first of the calls in which it holds; 0.0 where it does not."""
        if not holds:
            self._since = None
            return 0.0
        if self._since is None:
            self._since = now
        return now - self._since

    def end(self) -> None:
        """Forget since when it holds."""
        self._since = None
