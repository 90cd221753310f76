"""Divides long lists into pages."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    """`number` is from 1 to `last`; an empty list has one empty page."""

    items: Sequence[T]
    number: int
    last: int
    total: int


def page_of(items: Sequence[T], number: int, size: int) -> Page[T]:
    """The nearest page there is."""
    last = max(1, -(-len(items) // size))
    number = min(max(1, number), last)
    return Page(items[(number - 1) * size : number * size], number, last, len(items))
