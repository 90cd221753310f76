"""Tells the groups that show a mirror's lag (`lag.group.id`) from those of applications."""

from collections.abc import Collection
from typing import Final

LAG_METADATA: Final = "sparkmirror: what a mirror has copied"
"""The metadata of every offset of such a group."""


def shows_lag(metadata: Collection[str]) -> bool:
    """Whether a group with this metadata, one of each of its offsets, is that of a mirror."""
    return bool(metadata) and all(each == LAG_METADATA for each in metadata)
