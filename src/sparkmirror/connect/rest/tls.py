"""Builds the REST API's TLS contexts from `ssl.*` keys, as server and as client of other workers."""

import ssl
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_options import SSL
from sparkmirror.config.properties import Properties
from sparkmirror.config.tls_settings import tls_settings
from sparkmirror.config.worker_options import INTERNAL_REST
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.tls_context import configure

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
    return RestTls(tls_settings(properties, values), values.string("ssl.client.auth"))


def server_context(settings: RestTls) -> ssl.SSLContext:
    """Raises ConfigError when there is no usable key."""
    if settings.stores.key_store is None:
        reason = "An https listener needs a key store with its key and certificates"
        raise ConfigError("ssl.keystore.location", None, reason)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    configure(context, settings.stores)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return context
