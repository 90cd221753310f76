"""Reads the `ssl.*` keys of a client or of the REST API, as Java's clients understand them. Opens no file."""

import re
from typing import Final

from sparkmirror.config.definitions import Password, Values
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import VERSIONS, Store, TlsSettings

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


_KINDS: Final = ("JKS", "PKCS12", "PEM")
_WITHOUT_COUNTERPART: Final = (
    "ssl.engine.factory.class",
    "ssl.provider",
    "ssl.secure.random.implementation",
)
_PEM_PASSWORDS: Final = {
    "ssl.keystore": "SSL key store password cannot be specified with PEM format, "
    "only key password may be specified",
    "ssl.truststore": "SSL trust store password cannot be specified for PEM format.",
}
"""Java's refusals: ssl.key.password decrypts a key, not the store's password."""
_ALGORITHMS: Final = {
    "ssl.keymanager.algorithm": ("SUNX509", "NEWSUNX509", "PKIX"),
    "ssl.trustmanager.algorithm": ("SUNX509", "PKIX"),
}


def tls_settings(properties: Properties, values: Values) -> TlsSettings:
    """`values` are the parsed properties. Raises ConfigError, which names the key as the user wrote it."""
    _refuse_without_counterpart(properties, values)
    versions, ciphers = _versions_and_ciphers(properties, values)
    return TlsSettings(
        key_store=_key_store(properties, values),
        trust_store=_trust_store(properties, values),
        key_password=_secret(values, "ssl.key.password"),
        versions=versions,
        ciphers=ciphers,
        checks_host_names=_checks_host_names(properties, values),
    )


def _refuse_without_counterpart(properties: Properties, values: Values) -> None:
    for key in _WITHOUT_COUNTERPART:
        if values.given(key) and values[key]:
            raise properties.error(key, "has no counterpart outside of Java: remove it")
    for key, known in _ALGORITHMS.items():
        if values.given(key) and str(values[key] or known[0]).upper() not in known:
            raise properties.error(key, f"has no counterpart outside of Java but for {', '.join(known)}")


def _checks_host_names(properties: Properties, values: Values) -> bool:
    key = "ssl.endpoint.identification.algorithm"
    algorithm = str(values[key] or "").strip()
    if algorithm.lower() not in ("", "https"):
        raise properties.error(key, "only https is known, and an empty value that turns the check off")
    return bool(algorithm)


def _versions_and_ciphers(properties: Properties, values: Values) -> tuple[tuple[str, ...], tuple[str, ...]]:
    enabled = values.strings("ssl.enabled.protocols")
    versions = tuple(version for version in VERSIONS if version in enabled)
    if enabled and not versions:
        raise properties.error("ssl.enabled.protocols", f"of these only {' and '.join(VERSIONS)} are spoken")
    given = values.strings("ssl.cipher.suites")
    ciphers = []
    for name in given:
        if is_of_tls_1_3(name):
            continue
        if (own := openssl_name(name)) is None:
            quoted = properties.quoted("ssl.cipher.suites", name)
            raise properties.error("ssl.cipher.suites", f"OpenSSL has no counterpart of {quoted}")
        ciphers.append(own)
    versions = versions or VERSIONS
    if given:  # a version without one of its suites can't be spoken
        has_suites = {"TLSv1.2": bool(ciphers), "TLSv1.3": len(ciphers) < len(given)}
        versions = tuple(version for version in versions if has_suites[version])
        if not versions:
            raise properties.error(
                "ssl.cipher.suites", "none of them is of a version in ssl.enabled.protocols"
            )
    return versions, tuple(ciphers)


def _key_store(properties: Properties, values: Values) -> Store | None:
    key, chain = _secret(values, "ssl.keystore.key"), _secret(values, "ssl.keystore.certificate.chain")
    if (key is None) != (chain is None):
        missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
        raise ConfigError(missing, None, "is missing: a key and its certificates belong together")
    return _store(properties, values, "ssl.keystore", None if key is None else f"{key}\n{chain}\n")


def _trust_store(properties: Properties, values: Values) -> Store | None:
    return _store(properties, values, "ssl.truststore", _secret(values, "ssl.truststore.certificates"))


def _store(properties: Properties, values: Values, option: str, text: str | None) -> Store | None:
    location, password = values[f"{option}.location"], _secret(values, f"{option}.password")
    if text is None and location is None:
        if password is not None:  # as Java, since other authorities would be trusted than the user thinks
            raise properties.error(f"{option}.password", f"is given without {option}.location")
        return None
    kind = values.string(f"{option}.type").strip().upper()
    if kind not in _KINDS:
        raise properties.error(f"{option}.type", f"is none of {', '.join(_KINDS)}")
    if text is not None:
        if kind != "PEM":
            raise properties.error(f"{option}.type", "must be PEM for keys and certificates in the settings")
        if location is not None:
            raise properties.error(
                f"{option}.location", "is given beside keys or certificates: leave one out"
            )
    if kind == "PEM" and password is not None:
        raise properties.error(f"{option}.password", _PEM_PASSWORDS[option])
    roots = properties.roots(f"{option}.location")
    return Store(option, kind, None if location is None else str(location), text, password, roots)


def _secret(values: Values, name: str) -> str | None:
    secret = values[name]
    return secret.value if isinstance(secret, Password) else None
