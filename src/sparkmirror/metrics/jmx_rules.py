"""Names MBeans' attributes by a rules file of Prometheus' JMX exporter, as the exporter does.

A rule's pattern meets `domain<key=value, …><>attribute: value`; the first rule that matches decides.
`jmx_rules_file` reads the file, and `naming` remembers what the rules made of an attribute.

Pure.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isfinite, isnan
from typing import TYPE_CHECKING, Final, NamedTuple

from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.mbeans import MBean, Properties, jmx_value
from sparkmirror.policies.java_replacement import Replacement, expanded

if TYPE_CHECKING:
    import regex

KEY: Final = "metrics.rules"
_MATCH_MAX_S: Final = 0.2
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9:_]|_+")


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

    pattern: "regex.Pattern[str]"
    behind: "regex.Pattern[str] | None"
    lead: str
    name: Replacement
    labels: tuple[tuple[Replacement, Replacement], ...]
    help: Replacement | None
    value: Replacement | None
    factor: float
    kind: str
    literals: tuple[str, ...]
    reads_value: bool


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a file, and its options for all of them."""

    rules: tuple[Rule, ...]
    lowercase_name: bool = False
    lowercase_labels: bool = False
    infer_counters: bool = False

    def named(self, bean: MBean, attribute: str, value: float | str) -> tuple[NamedAttribute | None, bool]:
        """The sample of an attribute, None for none; and whether that is the same whatever its value is.

        Raises ConfigError for a pattern that takes too long.
        """
        is_fixed = True
        for properties in (bean.properties, *([] if bean.older is None else [bean.older])):
            found, fixed = self._first_match(bean.domain, properties, attribute, value)
            is_fixed &= fixed
            if found is not None:
                return found, is_fixed
        return None, is_fixed

    def _first_match(
        self, domain: str, properties: Properties, attribute: str, value: float | str
    ) -> tuple[NamedAttribute | None, bool]:
        origin = f"{_bean_name(domain, properties)}{attribute}"
        text = f"{origin}: {_shown(value)}"
        is_fixed = not isinstance(value, str)
        for rule in self.rules:
            if any(literal not in text for literal in rule.literals):
                continue
            is_fixed &= not rule.reads_value
            match = _matched(rule, text)
            if match is not None:
                ends = [match.end(group) for group in range(1, rule.pattern.groups + 1)]
                is_fixed &= max(ends, default=0) <= len(origin)
                return self._made(rule, match, f"{domain} {attribute}", origin), is_fixed
        return None, is_fixed

    def _made(
        self, rule: Rule, match: "regex.Match[str]", default_help: str, origin: str
    ) -> NamedAttribute | None:
        number = None
        if rule.value is not None:
            try:
                number = float(expanded(rule.value, match))
            except ValueError:
                return None
        name = safe_name(expanded(rule.name, match))
        if not name:
            return None
        pairs = [(safe_name(expanded(key, match)), expanded(text, match)) for key, text in rule.labels]
        labels = {key.lower() if self.lowercase_labels else key: text for key, text in pairs if key and text}
        if self.lowercase_name:
            name = name.lower()
        kind = "counter" if self.infer_counters and name.endswith("_total") else rule.kind
        if kind == "counter" and not name.endswith("_total"):
            name += "_total"
        text = default_help if rule.help is None else expanded(rule.help, match)
        return NamedAttribute(name, tuple(labels.items()), kind, text, number, rule.factor, origin)


@lru_cache(maxsize=1)
def _bean_name(domain: str, properties: Properties) -> str:
    """The name of an MBean as the exporter writes it; kept for its next attribute."""
    return f"{domain}<{', '.join(f'{key}={jmx_value(text)}' for key, text in properties)}><>"


def _matched(rule: Rule, text: str) -> "regex.Match[str] | None":
    try:
        if rule.behind is not None and rule.lead and text.count(rule.lead) == 1:
            return rule.behind.fullmatch(text, pos=text.index(rule.lead), timeout=_MATCH_MAX_S)
        return rule.pattern.fullmatch(text, timeout=_MATCH_MAX_S)
    except TimeoutError as exc:
        reason = f"matching a pattern with '{text}' takes more than {_MATCH_MAX_S} s"
        raise ConfigError(KEY, rule.pattern.pattern, reason) from exc


def _shown(value: float | str) -> str:
    """Write a value as Java does."""
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
