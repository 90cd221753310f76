"""Reads what images of Kafka take as options of a JVM: an exporter of metrics, and what has no effect here.

Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sparkmirror.domain.errors import ConfigError

_OPTIONS: Final = ("KAFKA_HEAP_OPTS", "HEAP_OPTS", "KAFKA_OPTS", "EXTRA_ARGS", "KAFKA_JMX_OPTS")
_OTHERS: Final = (
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JMX_HOSTNAME",
    "JMX_PORT",
    "JMXPORT",
)
"""Variables without options that have an effect here."""

_EXPORTER: Final = re.compile(r"-javaagent:[^=]*jmx_prometheus_javaagent[^=/]*\.jar(?:=(.*))?")
_TARGET: Final = re.compile(r"(?:([\w.-]+|\[[^]]+]):)?(\d{1,5}):(.+)")
_LOGIN_FILE: Final = "-Djava.security.auth.login.config="
_HEAP: Final = re.compile(r"-X(?:mx|ms|mn|ss)\S+|-XX:(?:Max|Initial|Min)RAMPercentage=\S+")


class Exporter(NamedTuple):
    """The JMX exporter that a variable asks for: an address for `/metrics`, and the file with its rules."""

    variable: str
    address: str
    rules: str


class JvmOptions(NamedTuple):
    """`without_effect` has a line for each variable, without values that may be secret."""

    exporter: Exporter | None
    without_effect: tuple[str, ...]


def jvm_options(environ: Mapping[str, str]) -> JvmOptions:
    """Raises ConfigError for an exporter that can't be understood, and for two that differ."""
    found = [exporter for name in _OPTIONS for exporter in _exporters(name, environ.get(name, ""))]
    for other in found[1:]:
        if other[1:] != found[0][1:]:
            reason = f"asks for another address or file of the JMX exporter than {found[0].variable}"
            raise ConfigError(other.variable, None, reason)
    return JvmOptions(found[0] if found else None, tuple(_without_effect(environ)))


def _exporters(variable: str, options: str) -> Iterator[Exporter]:
    for word in options.split():  # as Kafka's scripts do, which know no quotes
        agent = _EXPORTER.fullmatch(word)
        if agent is None:
            continue
        target = _TARGET.fullmatch(agent[1] or "")
        if target is None:
            raise ConfigError(variable, word, "the JMX exporter's option is -javaagent:JAR=[HOST:]PORT:FILE")
        host, port, rules = target.groups()
        yield Exporter(variable, f"{host}:{port}" if host else port, rules)


def _without_effect(environ: Mapping[str, str]) -> Iterator[str]:
    for name in _OPTIONS:
        words = environ.get(name, "").split()
        rest = [word for word in words if not _EXPORTER.fullmatch(word) and not word.startswith(_LOGIN_FILE)]
        if rest:
            advice = "; the heap of Spark is spark.driver.memory" if any(map(_HEAP.fullmatch, rest)) else ""
            yield f"{name}: {' '.join(map(_shown, rest))} {_verb(rest)} no effect here{advice}"
    for name in _OTHERS:
        if environ.get(name):
            yield f"{name} has no effect here"


def _shown(word: str) -> str:
    """A system property may hold a password."""
    name, equals, _ = word.partition("=")
    return f"{name}=…" if equals and name.startswith("-D") else word


def _verb(words: list[str]) -> str:
    return "has" if len(words) == 1 else "have"
