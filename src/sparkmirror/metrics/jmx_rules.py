"""Names MBeans' attributes by a rules file of Prometheus' JMX exporter, as the exporter does.

A rule's pattern meets `domain<key=value, …><>attribute: value`; the first rule that matches decides.
`jmx_rules_file` reads the file, and `naming` remembers what the rules made of an attribute.

Pure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isfinite, isnan
from typing import TYPE_CHECKING, Final, NamedTuple

from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.mbeans import MBean, Properties
from sparkmirror.metrics.object_names import ObjectNamePattern, jmx_value

if TYPE_CHECKING:
    import regex

KEY: Final = "metrics.rules"
_MATCH_MAX_S: Final = 0.2
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9:_]|_+")
_CAPITAL: Final = re.compile(r"(?<=[^A-Z_])(?=[A-Z])")

Template = Sequence[str | int]
"""A replacement as Java reads it: texts, and the groups that are put between them."""


class NamedAttribute(NamedTuple):
    """A sample but for its value: that is the attribute's, times `factor`, unless `value` is there.

    `origin` tells samples apart that would have the same labels.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    kind: str
    help: str
    value: float | None
    factor: float
    origin: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`literals` are in every text that the pattern matches, and a match begins with `lead`.

    Looking for these first is many times quicker: then `behind`, the pattern without what the exporter puts
    before it, is tried in one place. `reads_value`: what it matches may depend on the attribute's value.
    """

    pattern: "regex.Pattern[str] | None"
    behind: "regex.Pattern[str] | None"
    lead: str
    name: Template | None
    labels: tuple[tuple[Template, Template], ...]
    help: Template | None
    value: Template | None
    factor: float
    kind: str
    snake_case: bool
    caches: bool
    literals: tuple[str, ...]
    reads_value: bool


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A rules file. An MBean that none of `included` matches is left out; without any, all are included."""

    rules: tuple[Rule, ...]
    lowercase_name: bool = False
    lowercase_labels: bool = False
    infer_counters: bool = False
    included: tuple[ObjectNamePattern, ...] = ()
    excluded: tuple[ObjectNamePattern, ...] = ()
    included_attributes: Mapping[ObjectNamePattern, frozenset[str]] | None = None
    excluded_attributes: Mapping[ObjectNamePattern, frozenset[str]] | None = None

    def takes(self, domain: str, properties: Properties, attribute: str) -> bool:
        """Whether the lists of object names leave the attribute in."""
        names = domain, properties
        if self.included and not any(pattern.matches(*names) for pattern in self.included):
            return False
        if any(pattern.matches(*names) for pattern in self.excluded):
            return False
        only, without = self.included_attributes, self.excluded_attributes
        if without and any(attribute in those and of.matches(*names) for of, those in without.items()):
            return False
        return not only or any(attribute in those and of.matches(*names) for of, those in only.items())

    def named(self, bean: MBean, attribute: str, value: float | str) -> tuple[NamedAttribute | None, bool]:
        """The sample of an attribute, None for none; and whether that is the same whatever its value is.

        Raises ConfigError for a pattern that takes too long.
        """
        is_fixed = True
        for properties in (bean.properties, *([] if bean.older is None else [bean.older])):
            if not self.takes(bean.domain, properties, attribute):
                continue
            found, fixed = self._first_match(bean.domain, properties, attribute, value)
            is_fixed &= fixed
            if found is not None:
                return found, is_fixed
        return None, is_fixed

    def _first_match(
        self, domain: str, properties: Properties, attribute: str, value: float | str
    ) -> tuple[NamedAttribute | None, bool]:
        quoted, bean_name = _bean_name(domain, properties)
        is_fixed = not isinstance(value, str)
        for rule in self.rules:
            its = snake_case(attribute) if rule.snake_case else attribute
            shown = "<cache>" if rule.caches else _shown(value)
            text = f"{bean_name}{its}: {shown}"
            if any(literal not in text for literal in rule.literals):
                continue
            is_fixed &= not rule.reads_value or rule.caches
            match = None
            if rule.pattern is not None:
                match = _matched(rule, rule.pattern, text)
                if match is None:
                    continue
                ends = [match.end(group) for group in range(1, rule.pattern.groups + 1)]
                is_fixed &= rule.caches or max(ends, default=0) <= len(bean_name) + len(its)
            bean = _Bean(domain, quoted, its, f"{bean_name}{its}")
            return self._made(rule, match, bean), is_fixed
        return None, is_fixed

    def _made(self, rule: Rule, match: "regex.Match[str] | None", bean: "_Bean") -> NamedAttribute | None:
        number = None
        if rule.value is not None:
            try:
                number = float(_expanded(rule.value, match))
            except ValueError:
                return None
        if rule.name is None:
            name, labels = _default_export(bean)
        else:
            name = safe_name(_expanded(rule.name, match))
            pairs = [(safe_name(_expanded(key, match)), _expanded(text, match)) for key, text in rule.labels]
            labels = [(key, text) for key, text in pairs if key and text]
        if not name:
            return None
        if self.lowercase_name:
            name = name.lower()
        if self.lowercase_labels:
            labels = [(key.lower(), text) for key, text in labels]
        kind = "counter" if self.infer_counters and name.endswith("_total") else rule.kind
        if kind == "counter" and not name.endswith("_total"):
            name += "_total"
        text = f"{bean.domain} {bean.attribute}" if rule.help is None else _expanded(rule.help, match)
        unique = tuple(dict(labels).items())
        return NamedAttribute(name, unique, kind, text, number, rule.factor, bean.origin)


@lru_cache(maxsize=1)
def _bean_name(domain: str, properties: Properties) -> tuple[Properties, str]:
    """The quoted properties, and how the exporter writes the name; of the attributes of one MBean in turn."""
    quoted = tuple((key, jmx_value(text)) for key, text in properties)
    return quoted, f"{domain}<{', '.join(f'{key}={text}' for key, text in quoted)}><>"


class _Bean(NamedTuple):
    domain: str
    properties: Properties
    attribute: str
    origin: str


def _default_export(bean: _Bean) -> tuple[str, list[tuple[str, str]]]:
    """The exporter's names without a `name`: domain, first property, attribute; the others are labels."""
    first = [text for _, text in bean.properties[:1]]
    name = safe_name("_".join((bean.domain, *first, bean.attribute)))
    return name, [(safe_name(key), text) for key, text in bean.properties[1:]]


def _matched(rule: Rule, pattern: "regex.Pattern[str]", text: str) -> "regex.Match[str] | None":
    try:
        if rule.behind is not None and rule.lead and text.count(rule.lead) == 1:
            return rule.behind.fullmatch(text, pos=text.index(rule.lead), timeout=_MATCH_MAX_S)
        return pattern.fullmatch(text, timeout=_MATCH_MAX_S)
    except TimeoutError as exc:
        reason = f"matching a pattern with '{text}' takes more than {_MATCH_MAX_S} s"
        raise ConfigError(KEY, pattern.pattern, reason) from exc


def _shown(value: float | str) -> str:
    """As Java writes it."""
    if isinstance(value, str):
        return value
    number = float(value)
    if not isfinite(number):
        return "NaN" if isnan(number) else f"{'-' if number < 0 else ''}Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


@lru_cache(maxsize=1024)
def safe_name(text: str) -> str:
    """The exporter's safe name: other characters become underscores, of which one stays of several."""
    if text[:1].isascii() and text[:1].isdigit():
        text = f"_{text}"
    return re.sub("_+", "_", _UNSAFE.sub("_", text))


def snake_case(text: str) -> str:
    """`attrNameSnakeCase`: an underscore before each capital that follows another kind of letter."""
    return _CAPITAL.sub("_", text).lower()


def _expanded(template: Template, match: "regex.Match[str] | None") -> str:
    return "".join(
        part if isinstance(part, str) else (match[part] or "" if match is not None else "")
        for part in template
    )
