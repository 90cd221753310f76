"""Reads a chain of transforms from a connector's properties, by Connect's rules. Pure."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, TypeVar

from sparkmirror.config.definitions import JAVA_WHITESPACE, Option, Type
from sparkmirror.config.plugin_points import UnusablePluginError, find_function
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.java_regex import compile_names
from sparkmirror.transforms.chain import (
    Chain,
    DropHeaders,
    Filter,
    Function,
    HasHeaderKey,
    InsertHeader,
    Link,
    Predicate,
    RecordIsTombstone,
    RegexRouter,
    TopicNameMatches,
    Transform,
)
from sparkmirror.transforms.others import refusal_of

FUNCTION: Final = "sparkmirror.transforms.Function"
PACKAGE: Final = "org.apache.kafka.connect.transforms."
CHAINS: Final = ("transforms", "predicates")
_TRANSFORMS, _PREDICATES = CHAINS
_BOOLEAN: Final = Option("negate", Type.BOOLEAN, default=False)
_NAMES: Final = Option("headers", Type.LIST, default=())
_UNUSABLE: Final = "the value of the placeholder can't be used"
_NULL: Final = "null"

T = TypeVar("T")


class _Item(NamedTuple):
    """A transform or predicate, whose properties are below `head`."""

    properties: Properties
    head: str

    def key(self, name: str) -> str:
        return f"{self.head}.{name}"

    def get(self, name: str) -> str | None:
        text = self.properties.get(self.key(name))
        return None if text is None else text.strip(JAVA_WHITESPACE)

    def wanted(self, name: str, *, may_be_empty: bool = False) -> str:
        text = self.get(name)
        if text is None:
            raise self.error(name, "is missing; a file of MirrorMaker has it below SOURCE->TARGET. only")
        if not text and not may_be_empty:
            raise self.error(name, "must not be empty")
        return text

    def parsed(self, name: str, option: Option) -> object:
        text = self.get(name)
        try:
            return option.default if text is None else option.parse(text)
        except ValueError as error:
            raise self.error(name, str(error)) from error

    def error(self, name: str, reason: str) -> ConfigError:
        chain = self.head.partition(".")[0]
        if self.properties.hides(chain):  # the key has what the placeholder stands for
            return self.properties.error(chain, _UNUSABLE)
        return self.properties.error(self.key(name), reason)


def chain_of(properties: Properties) -> Chain | None:
    """The chain of a connector; None without transforms. Raises ConfigError with key, value and reason.

    Functions are imported.
    """
    predicates = {
        alias: _predicate(_Item(properties, f"{_PREDICATES}.{alias}"))
        for alias in _aliases(properties, _PREDICATES)
    }
    links = [
        _link(_Item(properties, f"{_TRANSFORMS}.{alias}"), predicates)
        for alias in _aliases(properties, _TRANSFORMS)
    ]
    tolerance = properties.get("errors.tolerance", "").strip(JAVA_WHITESPACE)
    return Chain(tuple(links), tolerates=tolerance == "all") if links else None


def require_routers(properties: Properties) -> Chain | None:
    """The chain of a connector that writes records of the mirror's own: only names of topics may change.

    Raises ConfigError as `chain_of`, and for other transforms.
    """
    chain = chain_of(properties)
    if chain is not None and chain.changes_records:
        reason = "is for MirrorSourceConnector, whose records are others'; here only RegexRouter may be"
        raise properties.error(_TRANSFORMS, reason)
    return chain


def function_keys(properties: Mapping[str, str]) -> list[str]:
    """The keys that name functions of the user's."""
    return [key for key in properties if key.startswith(f"{_TRANSFORMS}.") and key.endswith(".function")]


def _aliases(properties: Properties, key: str) -> tuple[str, ...]:
    aliases = Option(key, Type.LIST, default=()).parse(properties.get(key, ""))
    assert isinstance(aliases, tuple)
    return aliases


def _link(item: _Item, predicates: Mapping[str, Predicate]) -> Link:
    transform = _of_type(item, _MADE, "Transformation")
    negates = item.parsed("negate", _BOOLEAN) is True
    alias = item.get("predicate") or None
    if alias is None:
        if item.get("negate") is not None:
            raise item.error("negate", f"there is no {item.key('predicate')} to be negated")
        return Link(transform)
    if alias not in predicates:
        raise item.error("predicate", f"is none of those that {_PREDICATES} lists")
    predicate = predicates[alias]
    if isinstance(transform, RegexRouter) and not isinstance(predicate, TopicNameMatches):
        raise item.error("predicate", "must be TopicNameMatches: a topic has one name on the target")
    return Link(transform, predicate, negates)


def _predicate(item: _Item) -> Predicate:
    return _of_type(item, _ASKED, "Predicate")


def _of_type(item: _Item, known: Mapping[str, Callable[[_Item], T]], kind: str) -> T:
    """Connect knows its classes by their simple names too."""
    name = item.wanted("type")
    class_name = _class_of(name, known)
    if class_name is None:
        raise item.error("type", refusal_of(name, item.head, kind, known))
    return known[class_name](item)


def _class_of(name: str, known: Collection[str]) -> str | None:
    names = (name, f"{PACKAGE}{name}", f"{PACKAGE}predicates.{name}")
    return next((each for each in names if each in known), None)


def classes_of(kind: str) -> Collection[str]:
    """The classes that `transforms` or `predicates` may have."""
    return _MADE if kind == _TRANSFORMS else _ASKED


def class_of(kind: str, name: str) -> str | None:
    """The class of this name of `transforms` or `predicates`; None if it is not here."""
    return _class_of(name, classes_of(kind))


def _drop_headers(item: _Item) -> DropHeaders:
    item.wanted("headers")
    names = item.parsed("headers", _NAMES)
    assert isinstance(names, tuple)
    return DropHeaders(frozenset(names))


def _insert_header(item: _Item) -> InsertHeader:
    """A literal is its text, or null; Java's SimpleHeaderConverter writes numbers and lists as text too."""
    name, literal = item.wanted("header"), item.wanted("value.literal", may_be_empty=True)
    return InsertHeader(name, None if literal == _NULL else literal.encode())


def _function(item: _Item) -> Function:
    reference = item.wanted("function")
    try:
        find_function(reference)
    except UnusablePluginError as error:
        is_hidden = item.properties.hides(item.key("function"))
        raise item.error("function", _UNUSABLE if is_hidden else str(error)) from error
    return Function(reference)


def _regex_router(item: _Item) -> RegexRouter:
    router = RegexRouter(
        item.wanted("regex"), item.wanted("replacement", may_be_empty=True), item.key("regex")
    )
    try:
        router.routed("")
    except ConfigError as error:
        name = "replacement" if error.value == router.replacement else "regex"
        raise item.error(name, error.reason) from error
    return router


def _topic_name_matches(item: _Item) -> TopicNameMatches:
    pattern = item.wanted("pattern")
    try:
        compile_names([pattern], item.key("pattern"))
    except ConfigError as error:
        raise item.error("pattern", error.reason) from error
    return TopicNameMatches(pattern, item.key("pattern"))


_MADE: Final[Mapping[str, Callable[[_Item], Transform]]] = {
    f"{PACKAGE}Filter": lambda _: Filter(),
    f"{PACKAGE}DropHeaders": _drop_headers,
    f"{PACKAGE}InsertHeader": _insert_header,
    f"{PACKAGE}RegexRouter": _regex_router,
    FUNCTION: _function,
}
_ASKED: Final[Mapping[str, Callable[[_Item], Predicate]]] = {
    f"{PACKAGE}predicates.TopicNameMatches": _topic_name_matches,
    f"{PACKAGE}predicates.HasHeaderKey": lambda item: HasHeaderKey(item.wanted("name")),
    f"{PACKAGE}predicates.RecordIsTombstone": lambda _: RecordIsTombstone(),
}
