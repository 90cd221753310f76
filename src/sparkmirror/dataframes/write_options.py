"""The options of `.write` and `.writeStream`: those of Spark's Kafka sink, and those of exactly once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_layers import data_frame_producer
from sparkmirror.config.client_options import PRODUCER
from sparkmirror.config.definitions import Definition, Option, Type
from sparkmirror.dataframes.known_options import canonical, refuse_unknown
from sparkmirror.domain.client_settings import ProducerSettings
from sparkmirror.domain.errors import ConfigError

DECISIONS_TOPIC: Final = "sparkmirror-sink-decisions"

OPTIONS: Final = Definition(
    [
        Option("topic", Type.STRING, None),
        Option("includeHeaders", Type.BOOLEAN, default=False),
        Option("transactional.id.prefix", Type.STRING, None),
        Option("decisions.topic", Type.STRING, DECISIONS_TOPIC),
        Option("checkpointLocation", Type.STRING, None),
        Option("queryName", Type.STRING, None),
        Option("path", Type.STRING, None),
    ]
)
"""All options but those that begin with `kafka.`, the producer's. Spark passes the last three itself."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    producer: ProducerSettings
    topic: str | None
    """The topic of all rows; None if they have a column for it."""
    prefix: str | None
    """The prefix of the transactional ids; None writes at least once."""
    decisions_topic: str
    transaction_timeout_s: float

    @property
    def decision_id(self) -> str:
        """The transactional id under which the driver writes decisions."""
        return f"{self.prefix}-decisions"

    def task_id(self, task: int, attempt: int) -> str:
        return f"{self.prefix}-task-{task}-{attempt}"

    @property
    def task_prefix(self) -> str:
        """The prefix of all tasks' transactional ids."""
        return f"{self.prefix}-task-"


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises ConfigError with the name of the option that can't be used."""
    properties = canonical(options, OPTIONS)
    refuse_unknown(properties, OPTIONS, PRODUCER, "sparkmirror sink")
    values = OPTIONS.parse(properties)
    prefix = properties.get("transactional.id.prefix", "").strip()
    if "transactional.id.prefix" in properties and not prefix:
        raise properties.error("transactional.id.prefix", "is empty")
    producer, timeout_s = data_frame_producer(properties)
    if prefix and not producer.idempotent:
        raise ConfigError("kafka.enable.idempotence", "false", "transactional.id.prefix needs idempotence")
    if prefix and producer.acks != -1:
        raise ConfigError("kafka.acks", producer.acks, "transactional.id.prefix needs acks=all")
    return WriteOptions(
        producer=producer,
        topic=properties.get("topic", "").strip() or None,
        prefix=prefix or None,
        decisions_topic=values.string("decisions.topic").strip(),
        transaction_timeout_s=timeout_s,
    )
