"""Ends the tables of `sparkmirror status`: rows of promoted topics, and how many topics are not shown."""

from collections.abc import Iterator
from typing import Final

from sparkmirror.storage.promotions import Promotions

SHOWN_MAX: Final = 20


def last_rows(flow: str, topics: int, promoted: Promotions) -> Iterator[tuple[str, ...]]:
    """Below the first 20 of the topics that are mirrored."""
    for topic, each in sorted(promoted.items())[: max(0, SHOWN_MAX - topics)]:
        yield flow, topic, str(len(each.partings) or ""), "-", str(each)
    left = topics + len(promoted) - SHOWN_MAX
    if left > 0:
        yield flow, f"… and {left:,} more, see -o json", "", "", ""
