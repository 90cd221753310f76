"""A topic that is missing at the source, as it's remembered."""

from typing import NamedTuple


class Missed(NamedTuple):
    """Epoch seconds: when the topic was missing at first, and when it was last."""

    since: float
    seen_missing: float
