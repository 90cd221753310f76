"""Declares the options of `/metrics`: of mm2.properties at its top level, and of a worker's properties."""

from typing import Final, NamedTuple

from sparkmirror.config.definitions import Definition, Option, Type
from sparkmirror.config.properties import Properties
from sparkmirror.config.validators import NonEmpty, OneOf

RULES: Final = "metrics.rules"
DETAIL: Final = "metrics.detail"

METRICS: Final = Definition(
    (
        Option(
            RULES,
            Type.STRING,
            "connect",
            "The names of Java's metrics on `/metrics`: `connect` (as rules for Connect do), "
            "`strimzi`, "
            "`strimzi-reporter`, or the path of a rules file of Prometheus' JMX exporter. Its patterns meet "
            "the MBeans of Kafka 4, else those of Kafka 3.9.",
            NonEmpty(),
        ),
        Option(
            DETAIL,
            Type.STRING,
            "partition",
            "Whether `/metrics` has each partition, or the partitions of each topic together, as `all`.",
            OneOf(("partition", "topic")),
        ),
    )
)


class MetricsOptions(NamedTuple):
    """The options as they are written; `rules` may be a path."""

    rules: str = "connect"
    detail: str = "partition"


def metrics_options(properties: Properties) -> MetricsOptions:
    """Raises ConfigError."""
    values = METRICS.parse(properties.only(METRICS.names))
    return MetricsOptions(values.string(RULES), values.string(DETAIL))
