"""Reads the transaction settings of a worker and a source connector (KIP-618)."""

from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_layers import target_producer_properties
from sparkmirror.config.client_options import PRODUCER
from sparkmirror.config.connector_options import SOURCE_FRAMEWORK
from sparkmirror.config.definitions import JAVA_WHITESPACE, Values
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_settings import WorkerSettings

NOT_ENABLED: Final = "This worker does not have exactly-once source support enabled."
NO_BOUNDARIES: Final = (
    "The connector does not support connector-defined transaction boundaries with the given configuration."
    " Please reconfigure it to use a different transaction boundary definition."
)
_INTERVAL = "transaction.boundary.interval.ms"
_TIMEOUT_SHARE_MAX = 0.5
"""The default interval as a share of the time-out: Kafka's defaults for both are a minute."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """`interval_s` is how long a transaction lasts; None ends each as soon as that is efficient.

    The coordinator aborts a transaction that is open for longer than `timeout_s`.
    """

    interval_s: float | None
    timeout_s: float


def transaction_settings(
    settings: WorkerSettings, worker: Properties, connector: Properties
) -> TransactionSettings | None:
    """Read the settings of transactions; None where records are written without them.

    Raises ConfigError for what Kafka's DistributedHerder refuses, and for contradictions.
    """
    values = SOURCE_FRAMEWORK.parse(connector)
    enabled = settings.exactly_once_source
    if values.string("exactly.once.support").lower() == "required" and not enabled:
        raise connector.error("exactly.once.support", NOT_ENABLED)
    boundary = values.string("transaction.boundary").lower()
    if boundary == "connector":
        raise connector.error("transaction.boundary", NO_BOUNDARIES)
    if not enabled:
        return None
    producer = target_producer_properties(worker, connector)
    parsed = PRODUCER.parse(producer)
    _check_producer(producer, parsed)
    timeout_s = parsed.seconds("transaction.timeout.ms")
    interval_s = _interval_s(settings, connector, values, timeout_s) if boundary == "interval" else None
    return TransactionSettings(interval_s, timeout_s)


def _check_producer(producer: Properties, values: Values) -> None:
    """Refuse settings that no transactional producer may have. Java overrules some with a warning."""
    if values.given("enable.idempotence") and not values.boolean("enable.idempotence"):
        raise producer.error("enable.idempotence", "contradicts exactly.once.source.support=enabled")
    if values.string("acks") == "1":
        raise producer.error("acks", "must be all with exactly.once.source.support=enabled")
    if values.integer("transaction.timeout.ms") <= 0:
        raise producer.error("transaction.timeout.ms", "must be at least 1")


def _interval_s(settings: WorkerSettings, connector: Properties, values: Values, timeout_s: float) -> float:
    if values[_INTERVAL] is None:
        return min(settings.offset_flush_interval_s, timeout_s * _TIMEOUT_SHARE_MAX)
    interval_s = values.seconds(_INTERVAL)
    if interval_s >= timeout_s:
        reason = f"must be below the producer's transaction.timeout.ms, {timeout_s * 1000:.0f}"
        raise connector.error(_INTERVAL, reason)
    return interval_s


def transactional_id(group_id: str, connector_name: str, task: int) -> str:
    """The transactional id that Connect gives a task's producer: Java MM2 and we fence each other."""
    return f"{group_id}-{connector_name.strip(JAVA_WHITESPACE)}-{task}"
