"""Defines chains of transforms as a connector's properties name them. Plans bring them to tasks. Pure."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from sparkmirror.domain.errors import PluginError
from sparkmirror.policies.java_regex import compile_capturing, compile_names
from sparkmirror.policies.java_replacement import expanded, parse_replacement

_MATCH_MAX_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class TopicNameMatches:
    """Whether the topic on the target has such a name, as in Connect, whose records bear that name."""

    pattern: str
    key: str
    """The property that has the pattern."""

    def matches(self, topic: str) -> bool:
        return compile_names([self.pattern], self.key).fullmatch(topic)


@dataclass(frozen=True, slots=True)
class HasHeaderKey:
    name: str


@dataclass(frozen=True, slots=True)
class RecordIsTombstone: ...


Predicate = TopicNameMatches | HasHeaderKey | RecordIsTombstone


@dataclass(frozen=True, slots=True)
class Filter:
    """Leaves the record out."""


@dataclass(frozen=True, slots=True)
class DropHeaders:
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class InsertHeader:
    """Adds a header behind the others, whether there is one of that name or not."""

    name: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Function:
    """Hands the records to a function of the user's, `package.module:name`."""

    reference: str


@dataclass(frozen=True, slots=True)
class RegexRouter:
    """Changes the names of topics on the target that match as a whole; records stay as they are."""

    regex: str
    replacement: str
    key: str
    """The property that has the regex."""

    def routed(self, topic: str) -> str:
        """The name that the topic gets. Raises ConfigError, and PluginError if that takes too long."""
        pattern = compile_capturing(self.regex, self.key)
        replacement = parse_replacement(self.replacement, pattern, self.key)
        try:
            if pattern.fullmatch(topic, timeout=_MATCH_MAX_S) is None:
                return topic
            found = pattern.search(topic, timeout=_MATCH_MAX_S)
        except TimeoutError as error:
            raise PluginError(f"{self.key}: matching it with '{topic}' takes too long") from error
        assert found is not None
        return topic[: found.start()] + expanded(replacement, found) + topic[found.end() :]


Transform = Filter | DropHeaders | InsertHeader | Function | RegexRouter


class Link(NamedTuple):
    """A transform of the chain, applied to records for which the predicate is true, or is not if `negates`.

    It is applied to all if there is no predicate.
    """

    transform: Transform
    predicate: Predicate | None = None
    negates: bool = False

    def concerns(self, topic: str) -> bool:
        """Whether it may be applied to records of that topic of the target."""
        predicate = self.predicate
        return not isinstance(predicate, TopicNameMatches) or predicate.matches(topic) is not self.negates

    def __str__(self) -> str:
        """Java's names with what is configured: `Filter unless HasHeaderKey region`."""
        if self.predicate is None:
            return _described(self.transform)
        word = "unless" if self.negates else "if"
        return f"{_described(self.transform)} {word} {_described(self.predicate)}"


def _described(item: Transform | Predicate) -> str:
    match item:
        case TopicNameMatches(pattern):
            what = pattern
        case HasHeaderKey(name) | InsertHeader(name):
            what = name
        case DropHeaders(names):
            what = ", ".join(sorted(names))
        case Function(reference):
            what = reference
        case RegexRouter(regex, replacement):
            what = f"{regex} to {replacement}"
        case _:
            what = ""
    return f"{type(item).__name__} {what}".rstrip()


class Chain(NamedTuple):
    """`tolerates` leaves a dead letter of a record that a transform fails with (`errors.tolerance=all`)."""

    links: tuple[Link, ...] = ()
    tolerates: bool = False

    @property
    def modules(self) -> frozenset[str]:
        """The modules of its functions."""
        functions = (link.transform for link in self.links if isinstance(link.transform, Function))
        return frozenset(function.reference.partition(":")[0] for function in functions)

    def route(self, topic: str) -> str:
        """The name that a topic gets on the target; `topic` is its name there without routers."""
        return self._followed(topic)[1]

    def of_topic(self, topic: str) -> "Chain | None":
        """The links that change records of a topic with that name on the target, without routers.

        None if there are none.
        """
        links, _ = self._followed(topic)
        return self._replace(links=links) if links else None

    def _followed(self, topic: str) -> tuple[tuple[Link, ...], str]:
        """Links behind a router see the name that it gives."""
        links: list[Link] = []
        for link in self.links:
            if not link.concerns(topic):
                continue
            if isinstance(link.transform, RegexRouter):
                topic = link.transform.routed(topic)
            else:
                links.append(link)
        return tuple(links), topic

    @property
    def opens_values(self) -> bool:
        """Whether keys and values are decoded."""
        return bool(self.modules)

    @property
    def changes_records(self) -> bool:
        return not all(isinstance(link.transform, RegexRouter) for link in self.links)

    @property
    def routes(self) -> bool:
        """Whether it changes names of topics."""
        return any(isinstance(link.transform, RegexRouter) for link in self.links)
