"""Builds the REST API's TLS contexts from `ssl.*` keys, as server and as client of other workers."""

import ssl
from dataclasses import dataclass
from typing import Any, Final, Self

from sparkmirror.config.client_options import SSL
from sparkmirror.config.kept_settings import tls_of
from sparkmirror.config.properties import Properties
from sparkmirror.config.tls_settings import tls_settings
from sparkmirror.config.worker_options import INTERNAL_REST
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.tls_context import KeptContexts, configure, new_context

_TABLE: Final = SSL | INTERNAL_REST
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True, repr=False)
class RestTls:
    """`client_auth` is `none`, `requested` or `required`."""

    stores: TlsSettings
    client_auth: str = "none"


def rest_tls(worker: Properties, prefix: str) -> RestTls:
    """Read the `ssl.*` keys with the prefix if there are any, else those without. Raises ConfigError."""
    own = worker.under(prefix).starting("ssl.")
    properties = own or worker.starting("ssl.")
    values = _TABLE.parse(properties)
    stores = tls_of(properties, tls_settings(properties, values))
    return RestTls(stores, values.string("ssl.client.auth"))


class ServerContext(ssl.SSLContext):
    """A listener's context: each connection is made with the stores and passwords of the last `renew`.

    The connections before continue as they are.
    """

    def __new__(cls, _settings: RestTls) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, settings: RestTls) -> None:
        """Raises ConfigError when there is no usable key."""
        self._stores = settings.stores
        self._contexts = KeptContexts(lambda stores: _made(stores, settings.client_auth))
        self.renew()

    def renew(self) -> None:
        """Read what has changed, which may take a second. What can't be read counts as it was."""
        self._newest = self._contexts.context_of(self._stores)

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        return self._newest.wrap_bio(*arguments, **named)


def _made(stores: TlsSettings, client_auth: str) -> ssl.SSLContext:
    if stores.key_store is None:
        reason = "An https listener needs a key store with its key and certificates"
        raise ConfigError("ssl.keystore.location", None, reason)
    context = new_context(ssl.PROTOCOL_TLS_SERVER)
    configure(context, stores)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    return context
