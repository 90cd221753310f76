"""Defines chains of transforms as a connector's properties name them. Plans bring them to tasks. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.policies.java_regex import compile_names


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


Transform = Filter | DropHeaders | InsertHeader | Function


class Link(NamedTuple):
    """A transform of the chain, applied to records for which the predicate is true, or is not if `negates`.

    Without a predicate it is applied to all.
    """

    transform: Transform
    predicate: Predicate | None = None
    negates: bool = False

    def concerns(self, topic: str) -> bool:
        """Whether it may be applied to records of that topic of the target."""
        predicate = self.predicate
        return not isinstance(predicate, TopicNameMatches) or predicate.matches(topic) is not self.negates


class Chain(NamedTuple):
    """`tolerates` leaves a dead letter of a record that a transform fails with (`errors.tolerance=all`)."""

    links: tuple[Link, ...] = ()
    tolerates: bool = False

    @property
    def modules(self) -> frozenset[str]:
        """The modules of its functions."""
        functions = (link.transform for link in self.links if isinstance(link.transform, Function))
        return frozenset(function.reference.partition(":")[0] for function in functions)

    def of_topic(self, topic: str) -> "Chain | None":
        """The links that concern a topic of the target; None if there are none."""
        links = tuple(link for link in self.links if link.concerns(topic))
        return self._replace(links=links) if links else None
