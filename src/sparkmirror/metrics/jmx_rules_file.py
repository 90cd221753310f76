"""Reads a rules file of Prometheus' JMX exporter, with its checks and its older keys.

Keys of the exporter's own process, as `hostPort` or `startDelaySeconds`, mean nothing here and are not read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import yaml

from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.jmx_rules import KEY, Rule, RuleSet, Template
from sparkmirror.metrics.object_names import ObjectNamePattern, object_name_pattern
from sparkmirror.policies.java_regex import compile_capturing

if TYPE_CHECKING:
    import regex

_TYPES: Final = {"GAUGE": "gauge", "COUNTER": "counter"}
_REFERENCE: Final = re.compile(
    r"\\(?P<escaped>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}", re.DOTALL
)
_PART: Final = re.compile(r"\\.|\[[^\]]*\]|\{[^}]*\}|[\s\S]")


def read_rules(text: str) -> RuleSet:
    """Parse a rules file, or a ConfigMap that holds one. Raises ConfigError for what the exporter refuses."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as exc:
        raise ConfigError(KEY, None, f"the rules are no YAML: {exc}") from exc
    return _rule_set(_mapping(_unpacked(documents), "the file"))


def _unpacked(documents: Sequence[Any]) -> Any:
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            for text in (document.get("data") or {}).values():
                return yaml.safe_load(text)
    return documents[0] if documents and documents[0] is not None else {}


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(KEY, None, f"{what} must hold keys and values")
    return value


def _rule_set(given: Mapping[str, Any]) -> RuleSet:
    rules = given.get("rules", [{}])
    if not isinstance(rules, list):
        raise ConfigError(KEY, None, "rules must be a list")
    return RuleSet(
        rules=tuple(_rule(_mapping(rule, "a rule")) for rule in rules),
        lowercase_name=given.get("lowercaseOutputName") is True,
        lowercase_labels=given.get("lowercaseOutputLabelNames") is True,
        infer_counters=given.get("inferCounterTypeFromName") is True,
        included=_patterns(given, "includeObjectNames", "whitelistObjectNames"),
        excluded=_patterns(given, "excludeObjectNames", "blacklistObjectNames"),
        included_attributes=_attributes(given, "includeObjectNameAttributes"),
        excluded_attributes=_attributes(given, "excludeObjectNameAttributes"),
    )


def _patterns(given: Mapping[str, Any], *keys: str) -> tuple[ObjectNamePattern, ...]:
    """The first key that is there counts; the other is its old name."""
    key = next((key for key in keys if key in given), None)
    return () if key is None else tuple(_object_name(key, text) for text in given[key] or ())


def _attributes(given: Mapping[str, Any], key: str) -> Mapping[ObjectNamePattern, frozenset[str]]:
    return {
        _object_name(key, of): frozenset(those) for of, those in _mapping(given.get(key, {}), key).items()
    }


def _object_name(key: str, text: Any) -> ObjectNamePattern:
    try:
        return object_name_pattern(str(text))
    except ValueError as exc:
        raise ConfigError(KEY, str(text), f"{key}: {exc}") from exc


def _rule(given: Mapping[str, Any]) -> Rule:
    pattern = None if "pattern" not in given else str(given["pattern"])
    labels, name = given.get("labels"), given.get("name")
    if name is None and (labels is not None or "help" in given):
        raise ConfigError(KEY, pattern, "a rule with labels or help needs a name")
    if name is not None and pattern is None:
        raise ConfigError(KEY, str(name), "a rule with a name needs a pattern")
    compiled = None if pattern is None else compile_capturing(f"^.*(?:{pattern}).*$", KEY)
    lead, literals = ("", ()) if pattern is None else _literals(pattern)
    return Rule(
        pattern=compiled,
        behind=compile_capturing(f"(?:{pattern}).*$", KEY) if lead else None,
        lead=lead,
        name=_template(name, compiled),
        labels=tuple(
            (_parsed(str(key), compiled), _parsed(str(text), compiled))
            for key, text in sorted(_mapping(labels or {}, "labels").items())
        ),
        help=_template(given.get("help"), compiled),
        value=_template(given.get("value"), compiled),
        factor=_factor(given.get("valueFactor", 1.0)),
        kind=_TYPES.get(str(given.get("type", "UNTYPED")), "untyped"),
        snake_case=given.get("attrNameSnakeCase") is True,
        caches=given.get("cache") is True,
        literals=literals,
        reads_value=pattern is not None and _reads_value(pattern),
    )


def _factor(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as exc:
        raise ConfigError(KEY, str(value), "valueFactor must be a number") from exc


def _template(text: Any, pattern: "regex.Pattern[str] | None") -> Template | None:
    return None if text is None or text == "" else _parsed(str(text), pattern)


def _parsed(text: str, pattern: "regex.Pattern[str] | None") -> Template:
    r"""`$1`, `${name}` and `\$`. As in Java a number has as many digits as there are groups for."""
    parts: list[str | int] = []
    at = 0
    for found in _REFERENCE.finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        if found["escaped"] is not None:
            parts.append(found["escaped"])
        elif found["name"] is not None:
            parts.append(_group_of_name(found["name"], pattern))
        else:
            digits = found["number"]
            while len(digits) > 1 and int(digits) > _groups(pattern):
                digits = digits[:-1]
            if int(digits) > _groups(pattern):
                raise ConfigError(KEY, text, f"the pattern has no group {digits}")
            parts += [int(digits), found["number"][len(digits) :]]
    parts.append(text[at:])
    return [part for part in parts if part != ""]


def _groups(pattern: "regex.Pattern[str] | None") -> int:
    return 0 if pattern is None else pattern.groups


def _group_of_name(name: str, pattern: "regex.Pattern[str] | None") -> int:
    number = {} if pattern is None else pattern.groupindex
    if name not in number:
        raise ConfigError(KEY, name, "the pattern has no group of this name")
    return int(number[name])


def _literals(pattern: str) -> tuple[str, tuple[str, ...]]:
    """A text with which every match begins, and texts that are in every match; empty where none is sure."""
    head, bracket, tail = pattern.rpartition(">")
    pattern = head + bracket + tail.partition(":")[0]  # behind a colon stands the value
    runs: list[str] = [""]
    depth = 0
    for part in _PART.findall(pattern):
        if part == "|" and depth == 0:
            return "", ()
        if part == "(":
            depth += 1
        elif part == ")":
            depth -= 1
        elif depth == 0 and (part.isalnum() or part in "<>=,-_: "):
            runs[-1] += part
            continue
        elif depth == 0 and part[0] in "?*{":
            runs[-1] = runs[-1][:-1]
        runs.append("")
    if "(?i" in pattern or "\\Q" in pattern:
        return "", ()
    return runs[0], tuple(sorted({run for run in runs if len(run) > 1}))


def _reads_value(pattern: str) -> bool:
    """A colon behind the brackets stands before the value."""
    return ":" in pattern.rpartition(">")[2]
