"""Reads a rules file of Prometheus' JMX exporter.

Supported is what the rules files of Kafka Connect and MirrorMaker 2 use; other keys are refused by name.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import yaml

from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.jmx_rules import KEY, Rule, RuleSet
from sparkmirror.policies.java_regex import compile_capturing
from sparkmirror.policies.java_replacement import Replacement, parse_replacement

if TYPE_CHECKING:
    import regex

_TYPES: Final = {"GAUGE": "gauge", "COUNTER": "counter"}
_SWITCHES: Final = ("lowercaseOutputName", "lowercaseOutputLabelNames", "inferCounterTypeFromName")
_PROCESS_KEYS: Final = frozenset(
    {"startDelaySeconds", "hostPort", "jmxUrl", "username", "password", "ssl", "httpServer", "cacheRules"}
)
"""Keys of the exporter's own process, and one of its example for brokers, which mean nothing here."""

_FILE_KEYS: Final = frozenset({"rules", *_SWITCHES}) | _PROCESS_KEYS
_RULE_KEYS: Final = frozenset({"pattern", "name", "labels", "help", "value", "valueFactor", "type"})
_PART: Final = re.compile(r"\\.|\[[^\]]*\]|\{[^}]*\}|[\s\S]")


def read_rules(text: str) -> RuleSet:
    """Parse a rules file, or a ConfigMap that holds one. Raises ConfigError naming what isn't supported."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as exc:
        raise ConfigError(KEY, None, f"the rules are no YAML: {exc}") from exc
    return _rule_set(_mapping(_unpacked(documents), "the file", _FILE_KEYS))


def _unpacked(documents: Sequence[Any]) -> Any:
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            for text in (document.get("data") or {}).values():
                return yaml.safe_load(text)
    return documents[0] if documents and documents[0] is not None else {}


def _mapping(value: Any, what: str, keys: frozenset[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(KEY, None, f"{what} must hold keys and values")
    unknown = sorted(map(str, set() if keys is None else value.keys() - keys))
    if unknown:
        raise ConfigError(
            KEY,
            None,
            f"{what} has {', '.join(unknown)}, which is not supported: {', '.join(sorted(keys or ()))} are",
        )
    return value


def _rule_set(given: Mapping[str, Any]) -> RuleSet:
    rules = given.get("rules")
    if not isinstance(rules, list):
        raise ConfigError(KEY, None, "rules must be a list")
    return RuleSet(
        tuple(_rule(_mapping(rule, "a rule", _RULE_KEYS)) for rule in rules),
        *(given.get(switch) is True for switch in _SWITCHES),
    )


def _rule(given: Mapping[str, Any]) -> Rule:
    for key in ("pattern", "name"):
        if not given.get(key):
            raise ConfigError(KEY, str(given), f"a rule needs a {key}")
    pattern = str(given["pattern"])
    compiled = compile_capturing(f"^.*(?:{pattern}).*$", KEY)
    lead, literals = _literals(pattern)
    return Rule(
        pattern=compiled,
        behind=compile_capturing(f"(?:{pattern}).*$", KEY) if lead else None,
        lead=lead,
        name=_parsed(given["name"], compiled),
        labels=tuple(
            (_parsed(key, compiled), _parsed(text, compiled))
            for key, text in sorted(_mapping(given.get("labels") or {}, "labels").items())
        ),
        help=_parsed(given["help"], compiled) if given.get("help") else None,
        value=None if given.get("value") in (None, "") else _parsed(given["value"], compiled),
        factor=_factor(given.get("valueFactor", 1.0)),
        kind=_TYPES.get(str(given.get("type", "UNTYPED")), "untyped"),
        literals=literals,
        reads_value=_reads_value(pattern),
    )


def _factor(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as exc:
        raise ConfigError(KEY, str(value), "valueFactor must be a number") from exc


def _parsed(given: Any, pattern: "regex.Pattern[str]") -> Replacement:
    return parse_replacement(str(given), pattern, KEY)


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
    """A colon behind the brackets introduces the value."""
    return ":" in pattern.rpartition(">")[2]
