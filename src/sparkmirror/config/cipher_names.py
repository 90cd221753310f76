"""Translates Java's names of cipher suites (those of the standard) to OpenSSL's."""

import re
from typing import Final

_TLS_1_3: Final = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
_KEY_EXCHANGES: Final = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "DHE_DSS": "DHE-DSS-",
    "RSA": "",
}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_JAVA_NAME: Final = re.compile(r"(?:TLS|SSL)_([A-Z_]+)_WITH_([A-Z0-9_]+)")


def is_of_tls_1_3(name: str) -> bool:
    """Whether it is a suite of TLS 1.3, which OpenSSL lets no Python program choose from."""
    return name in _TLS_1_3


def openssl_name(name: str) -> str | None:
    """OpenSSL's name of a suite of TLS 1.2, None where there is no counterpart."""
    found = _JAVA_NAME.fullmatch(name)
    if found is None:
        return None
    exchange, cipher = _KEY_EXCHANGES.get(found[1]), _CIPHERS.get(found[2])
    return None if exchange is None or cipher is None else f"{exchange}{cipher}"
