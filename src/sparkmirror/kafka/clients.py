"""kafka-python's admin client, built from connection settings.

Whoever opens one learns at once, by a DisconnectedError, that no broker can be reached, and why: the library
would go on trying for 10 to 30 s and then not say what kept it.
"""

from dataclasses import replace
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError as LibraryError
from kafka.errors import UnknownBrokerIdError

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, KafkaError, UnsupportedVersionError
from sparkmirror.kafka.error_codes import Needed, translate
from sparkmirror.kafka.metadata import addresses, connect_to_any


def _connection_options(settings: ConnectionSettings) -> dict[str, Any]:
    return {
        "bootstrap_servers": [f"{_bracketed(host)}:{port}" for host, port in addresses(settings)],
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
    """Raises DisconnectedError naming every address when none answers within `connect_timeout_s`."""
    patience_s = min(settings.connect_timeout_s, settings.request_timeout_s)
    connect_to_any(replace(settings, request_timeout_s=patience_s)).close()


class LibraryAdmin:
    """A KafkaAdminClient whose errors say what was asked of which cluster. One owner.

    It begins with the first call: it takes 5 ms of CPU, and many an owner never makes one.
    """

    def __init__(self, settings: ConnectionSettings, cluster: str) -> None:
        """`cluster` names it in errors: an alias. Raises KafkaError when nobody answers."""
        self._settings = settings
        self._cluster = cluster
        self._opened: Any = None
        require_answer(settings)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _client(self) -> Any:
        if self._opened is None:
            self._opened = open_admin(self._settings)
        return self._opened

    def call(
        self, action: str, method: str, *arguments: Any, needed: Needed | None = None, **options: Any
    ) -> Any:
        """The answer of the client's method. Raises KafkaError, UnsupportedVersionError.

        `needed` is what an AuthorizationError names.
        """
        what = f"{action} on {self._cluster}"
        client = self._client
        try:
            return getattr(client, method)(*arguments, **options)
        except (LibraryError, OSError) as error:
            if isinstance(error, UnknownBrokerIdError):
                # The library remembers which broker it took for the controller, also when that one has left
                # the cluster, and would ask for it for ever. Another client looks anew.
                client.close()
                self._opened = None
            raise self._explained(translate(error, what, needed)) from error
        except ValueError as error:  # the library's word for an API that the broker lacks
            raise UnsupportedVersionError(f"{what}: {error}") from error

    def _explained(self, error: KafkaError) -> KafkaError:
        """When nobody can be reached the library says `No node_id provided`; people need the address."""
        if error.retriable:
            try:
                require_answer(self._settings)
            except DisconnectedError as reason:
                return DisconnectedError(f"{error}: {reason}")
        return error


def open_admin(settings: ConnectionSettings) -> Any:
    require_answer(settings)
    options = _connection_options(settings)
    try:
        return KafkaAdminClient(**options, bootstrap_timeout_ms=int(settings.connect_timeout_s * 1000))
    except Exception as error:
        raise translate(error, f"connect to {_cluster(settings)}") from error
