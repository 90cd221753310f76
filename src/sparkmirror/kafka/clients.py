"""kafka-python's own clients, built from connection settings in one place.

Whoever opens one learns at once, by a DisconnectedError, that no broker can be reached, and why: the library
would go on trying for 10 to 30 s and then not say what kept it.
"""

from dataclasses import replace
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.error_codes import translate
from sparkmirror.kafka.metadata import Metadata, connect_to_any


def _connection_options(settings: ConnectionSettings) -> dict[str, Any]:
    return {
        "bootstrap_servers": [f"{_bracketed(host)}:{port}" for host, port in settings.bootstrap_servers],
        "client_id": settings.client_id,
        "request_timeout_ms": int(settings.request_timeout_s * 1000),
        "reconnect_backoff_ms": int(settings.reconnect_backoff_s * 1000),
        "reconnect_backoff_max_ms": int(settings.reconnect_backoff_max_s * 1000),
        "retry_backoff_ms": int(settings.retry_backoff_s * 1000),
        "metadata_max_age_ms": int(settings.metadata_max_age_s * 1000),
        "security_protocol": settings.security_protocol.value,
    }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _cluster(settings: ConnectionSettings) -> str:
    return ",".join(f"{_bracketed(host)}:{port}" for host, port in settings.bootstrap_servers)


def require_answer(settings: ConnectionSettings) -> None:
    """Raises DisconnectedError naming each bootstrap server when none answers within `connect_timeout_s`."""
    patience_s = min(settings.connect_timeout_s, settings.request_timeout_s)
    connect_to_any(replace(settings, request_timeout_s=patience_s), Metadata()).close()


def open_admin(settings: ConnectionSettings) -> Any:
    """A KafkaAdminClient."""
    require_answer(settings)
    options = _connection_options(settings)
    try:
        return KafkaAdminClient(**options, bootstrap_timeout_ms=int(settings.connect_timeout_s * 1000))
    except Exception as error:
        raise translate(error, f"connect to {_cluster(settings)}") from error


def open_producer(settings: ConnectionSettings) -> Any:
    """A KafkaProducer for the state topics: acks=all, one request in flight, as Connect writes them."""
    require_answer(settings)
    try:
        producer = KafkaProducer(
            **_connection_options(settings),
            acks="all",
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
            max_block_ms=int(settings.request_timeout_s * 1000),
            linger_ms=0,
        )
    except Exception as error:
        raise translate(error, f"connect to {_cluster(settings)}") from error
    _never_create_topics(producer._metadata)  # noqa: SLF001
    return producer


def open_consumer(settings: ConnectionSettings, *, read_committed: bool = False) -> Any:
    """A KafkaConsumer without a group, for the state topics."""
    require_answer(settings)
    try:
        consumer = KafkaConsumer(
            **_connection_options(settings),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if read_committed else "read_uncommitted",
        )
    except Exception as error:
        raise translate(error, f"connect to {_cluster(settings)}") from error
    _never_create_topics(consumer._client.cluster)  # noqa: SLF001
    return consumer


def _never_create_topics(metadata: Any) -> None:
    """State topics are made with settings of their own; asking for one must not make it with defaults.

    The library's option for that does not reach its metadata requests (kafka-python 3.0.12).
    """
    metadata.config["allow_auto_create_topics"] = False
