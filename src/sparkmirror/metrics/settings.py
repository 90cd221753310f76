"""Turns the options of `/metrics` into the names and the detail of the page."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from sparkmirror.config.metrics_options import RULES, MetricsOptions
from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.jmx_rules_file import read_rules
from sparkmirror.metrics.naming import Name, as_the_reporter

_REPORTER: Final = "strimzi-reporter"
_PACKAGED: Final = ("connect", "strimzi")


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """`name` names Java's metrics; `by_topic`: the partitions of a topic are added up."""

    name: Name
    by_topic: bool = False


def metrics_settings(options: MetricsOptions) -> MetricsSettings:
    """Read the rules. Raises ConfigError for a file that is missing, or that the exporter would refuse."""
    return MetricsSettings(_name(options.rules), options.detail == "topic")


def default_settings() -> MetricsSettings:
    return metrics_settings(MetricsOptions())


def _name(rules: str) -> Name:
    if rules == _REPORTER:
        return as_the_reporter
    return read_rules(_text(rules)).named


def _text(rules: str) -> str:
    if rules in _PACKAGED:
        return (files("sparkmirror.metrics.rules") / f"{rules}.yaml").read_text(encoding="utf-8")
    try:
        return Path(rules).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
        known = ", ".join((*_PACKAGED, _REPORTER))
        raise ConfigError(RULES, rules, f"can't be read: {reason}. It is a file, or one of {known}") from exc
