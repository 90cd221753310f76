"""Names what a page shows: which page, and which flow, topic or group of it, as in its URL. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlencode

PAGES: Final = (
    "overview",
    "flow",
    "topic",
    "groups",
    "group",
    "events",
    "connectors",
    "verify",
    "migrations",
)
_TEXT_MAX: Final = 1000
"""The longest value of a parameter; a topic's name has 249 characters at most."""
_KEYS: Final = ("of", "flow", "name", "matching", "page")
"""The parameters of a look, in the order of its fields."""


class PageLook(NamedTuple):
    """`matching` is a part of the names that a list shows; `page` counts from 1."""

    page: str
    flow: str = ""
    name: str = ""
    matching: str = ""
    number: int = 1

    @property
    def query(self) -> str:
        return query(self.flow, self.name, self.matching, self.number)


@lru_cache(4096)
def query(flow: str = "", name: str = "", matching: str = "", number: int = 1) -> str:
    """The URL's query, without the parameters that are not needed."""
    pairs = {"flow": flow, "name": name, "matching": matching, "page": "" if number == 1 else str(number)}
    return urlencode({key: value for key, value in pairs.items() if value})


def look_of(page: str, parameters: Mapping[str, str]) -> PageLook:
    """Parse a page's parameters; invalid ones are ignored."""
    number = parameters.get("page", "")
    flow, name, matching = (parameters.get(key, "")[:_TEXT_MAX] for key in ("flow", "name", "matching"))
    return PageLook(page, flow, name, matching, int(number) if number.isdecimal() and len(number) < 7 else 1)


def looks_query(looks: Iterable[PageLook]) -> str:
    """The query of an URL that asks for several."""
    return urlencode([pair for look in looks for pair in zip(_KEYS, look, strict=True)])


def looks_of(parameters: Sequence[tuple[str, str]]) -> list[PageLook]:
    """Parse a query of `looks_query`; other parameters are ignored, and there may be no such page."""
    pairs = [pair for pair in parameters if pair[0] in _KEYS]
    found = [dict(pairs[at : at + len(_KEYS)]) for at in range(0, len(pairs), len(_KEYS))]
    return [look_of(of.get("of", ""), of) for of in found]
