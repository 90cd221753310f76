"""kafka-python's admin client, built from connection settings.

Whoever opens one learns at once, by a DisconnectedError, that no broker can be reached, and why: the library
would go on trying for 10 to 30 s and then not say what kept it.
"""

from dataclasses import replace
from typing import Any

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
