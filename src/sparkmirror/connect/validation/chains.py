"""Describes the options of a connector's transforms and predicates, which Connect has for each alias.

Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sparkmirror.config import kafka_options
from sparkmirror.config.definitions import JAVA_WHITESPACE, REQUIRED, Definition, Option, Type
from sparkmirror.config.kafka_options import KeyInfo
from sparkmirror.connect.validation.descriptions import KAFKA_VERSION, described
from sparkmirror.connect.validation.infos import ConfigValue
from sparkmirror.connect.validation.values import Given
from sparkmirror.transforms.parsing import CHAINS, FUNCTION, PACKAGE, class_of, classes_of

_CAPTURED_ALIAS: Final = "ALIAS"
_TYPE, _VERSION = "type", "plugin.version"
"""The options of all."""
_PLAIN: Final = {
    "transforms": f"{PACKAGE}Filter",
    "predicates": f"{PACKAGE}predicates.RecordIsTombstone",
}
"""A class of each kind that has no options of its own."""
_REFERENCE: Final = Option(
    "function",
    Type.STRING,
    REQUIRED,
    doc="A function from one pyarrow.RecordBatch to another: package.module:name.",
)


class ChainItem(NamedTuple):
    """A transform or predicate; `class_name` is None for a class that is not here."""

    kind: str
    alias: str
    class_name: str | None

    @property
    def head(self) -> str:
        return f"{self.kind}.{self.alias}"

    def table(self) -> Iterator[tuple[KeyInfo, Option]]:
        """The descriptions of its options, with the options; only the type's if the class is not here."""
        table = _PLAIN[self.kind] if self.class_name in (None, FUNCTION) else self.class_name
        options = kafka_options.options(table)
        for info in kafka_options.descriptions(table):
            known = {field: self._named(value) for field, value in info.items()}
            name = known["name"].removeprefix(f"{self.head}.")
            if name == _VERSION and self.class_name is not None:
                known["default_value"] = KAFKA_VERSION
            if self.class_name is not None or name in (_TYPE, _VERSION):
                yield known, replace(options[info["name"]], name=known["name"])
        if self.class_name == FUNCTION:
            option = replace(_REFERENCE, name=f"{self.head}.{_REFERENCE.name}")
            group = {"group": self._named(f"{self.kind.capitalize()}: {_CAPTURED_ALIAS}")}
            yield described(option) | group, option

    def _named(self, value: Any) -> Any:
        return value.replace(_CAPTURED_ALIAS, self.alias) if isinstance(value, str) else value

    def completed(self, values: dict[str, ConfigValue]) -> None:
        """Show the class's whole name, and what may be chosen."""
        head, name = f"{self.head}.{_TYPE}", self.class_name
        kind, version = values[head], f"{self.head}.{_VERSION}"
        shown = name if kind.value is not None and name is not None else kind.value
        values[head] = replace(kind, value=shown, recommended=tuple(classes_of(self.kind)))
        if name is not None:
            values[version] = replace(values[version], recommended=(KAFKA_VERSION,))


def chain_items(given: Given) -> list[ChainItem]:
    """The transforms and predicates that a config lists, each once; none that a placeholder names."""
    return [
        ChainItem(kind, alias, class_of(kind, _text(given, f"{kind}.{alias}.{_TYPE}")))
        for kind in CHAINS
        if kind in given and not given.is_resolved(kind)
        for alias in dict.fromkeys(item.strip(JAVA_WHITESPACE) for item in _text(given, kind).split(","))
        if alias
    ]


def _text(given: Given, key: str) -> str:
    return (given.resolved(key) or "").strip(JAVA_WHITESPACE)


def options_of(items: Sequence[ChainItem]) -> tuple[dict[str, KeyInfo], Definition]:
    """The descriptions of their options by name, and the options."""
    found = [entry for item in items for entry in item.table()]
    return {info["name"]: info for info, _ in found}, Definition(option for _, option in found)
