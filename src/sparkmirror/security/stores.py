"""Reads key stores and trust stores of each kind that Kafka's clients take, as PEM.

JKS and PKCS12 are recognized by content, whichever of them is configured, as the JRE does.
"""

import base64
from collections.abc import Iterator
from typing import Final, NamedTuple

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import Store
from sparkmirror.files import NamedFile
from sparkmirror.security import keytool

_JKS: Final = b"\xfe\xed\xfe\xed"
_BYTES_MAX: Final = 4 << 20
_PBE: Final = bytes.fromhex("060a2a864886f70d010c01")
"""Begins the identifiers of PKCS12's own ciphers, in DER."""
_PBES1: Final = [bytes.fromhex(f"06092a864886f70d0105{number:02x}") for number in (1, 3, 4, 6, 10, 11)]
"""The identifiers of PKCS5's ciphers before AES."""
_ENCRYPTED_KEY: Final = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
_OLD_CIPHERS: Final = {"3DES": _PBE + b"\x03", "RC2": _PBE + b"\x06"}


class Keys(NamedTuple):
    """A private key and its certificates as PEM, and the key's password if it is encrypted."""

    pem: str
    password: str | None


def read_keys(store: Store, key_password: str | None) -> Keys:
    """Raises ConfigError naming the store's option."""
    if store.text is not None:
        return Keys(in_lines(store.text), key_password)
    data = _read(store)
    match _kind(store, data):
        case "PEM":
            return Keys(_text(data), key_password)
        case "JKS":
            try:
                converted = keytool.as_pkcs12(data, store.password, key_password)
            except keytool.KeytoolError as error:
                raise _refused(store, str(error)) from error
            return _keys_of_pkcs12(store, converted.data, converted.password)
        case _:
            return _keys_of_pkcs12(store, data, store.password)


def read_trusted(store: Store) -> str:
    """The certificates. Raises ConfigError naming the store's option."""
    if store.text is not None:
        return in_lines(store.text)
    data = _read(store)
    match _kind(store, data):
        case "PEM":
            return _text(data)
        case "JKS":
            try:
                return in_lines(keytool.certificates(data, store.password))
            except keytool.KeytoolError as error:
                raise _refused(store, str(error)) from error
        case _:
            return _certificates_of_pkcs12(store, data)


def remedy_of_old_key(pem: str) -> str:
    """Advise on a private key that is encrypted as FIPS mode refuses; empty for any other."""
    if "DEK-Info:" in pem:  # makes the key of the password by MD5
        kind = f"MD5 and {pem.partition('DEK-Info:')[2].partition(',')[0].strip()}"
    elif any(identifier in _encrypted_key(pem) for identifier in (*_PBES1, _PBE)):
        kind = "PBES1"
    else:
        return ""
    return (
        f". It is encrypted with {kind}, which OpenSSL refuses in FIPS mode:"
        " `openssl pkcs8 -topk8 -v2 aes-256-cbc` writes one with AES"
    )


def _encrypted_key(pem: str) -> bytes:
    """Return the DER of an encrypted key; empty without one, or for what can't be read."""
    body = pem.partition(_ENCRYPTED_KEY)[2].partition("-----")[0]
    try:
        return base64.b64decode(body)
    except ValueError:
        return b""


def _read(store: Store) -> bytes:
    try:
        return NamedFile(str(store.location), store.roots).read(_BYTES_MAX)
    except FileNotFoundError as error:
        raise _refused(store, "There is no such file") from error
    except OSError as error:
        raise _refused(store, f"Can't be read: {error.strerror}") from error


def _kind(store: Store, data: bytes) -> str:
    is_pem = BEGIN.encode() in data
    if is_pem != (store.kind == "PEM"):
        is_now = "a PEM file" if is_pem else "no PEM file"
        needed = "PEM" if is_pem else "JKS or PKCS12"
        reason = f"{store.location} is {is_now}: set it to {needed}"
        raise ConfigError(f"{store.option}.type", store.kind, reason)
    if is_pem:
        return "PEM"
    return "JKS" if data.startswith(_JKS) else "PKCS12"


def _text(data: bytes) -> str:
    return in_lines(data.decode(errors="replace"))  # names beside certificates may be of any encoding


def _keys_of_pkcs12(store: Store, data: bytes, password: str | None) -> Keys:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - only where it is needed
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise _unreadable(store, data) from error
    if found.key is None or found.cert is None:
        raise _refused(store, "It holds no key with a certificate")
    chain = [found.cert.certificate, *(each.certificate for each in found.additional_certs)]
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Keys((key + b"".join(each.public_bytes(Encoding.PEM) for each in chain)).decode(), None)


def _certificates_of_pkcs12(store: Store, data: bytes) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12  # noqa: PLC0415 - as above

    try:
        found = pkcs12.load_pkcs12(data, None if store.password is None else store.password.encode())
    except ValueError as error:
        readable = "" if store.password is not None else _without_password(data)
        if not readable:
            raise _unreadable(store, data) from error
        return readable
    held = [*([] if found.cert is None else [found.cert]), *found.additional_certs]
    if not held:
        raise _refused(store, "It holds no certificate")
    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in held).decode()


def _without_password(data: bytes) -> str:
    """The certificates that are not encrypted; Java checks no integrity without a password."""
    try:
        return in_lines(keytool.certificates(data, None))
    except keytool.KeytoolError:
        return ""


def _unreadable(store: Store, data: bytes) -> ConfigError:
    password = "its password" if store.password is None else f"the right {store.option}.password"
    reason = f"It can't be opened: it is no JKS or PKCS12 store, or needs {password}"
    old = [name for name, identifier in _OLD_CIPHERS.items() if identifier in data]
    if old:
        reason += (
            f". It is encrypted with {' and '.join(old)}, which OpenSSL refuses in FIPS mode and without its"
            " legacy provider: `keytool -importkeystore` of Java 17 writes one with AES"
        )
    return _refused(store, reason)


def _refused(store: Store, reason: str) -> ConfigError:
    return ConfigError(f"{store.option}.location", store.location, reason)


BEGIN: Final = "-----BEGIN "
_END: Final = "-----END "
_DASHES: Final = "-----"
_LINE: Final = 64


class _Entry(NamedTuple):
    label: str
    body: str

    def __str__(self) -> str:
        if ":" in self.body:  # headers of an old kind of encrypted key, which count by their lines
            lines = [self.body.strip()]
        else:
            joined = "".join(self.body.split())
            lines = [joined[at : at + _LINE] for at in range(0, len(joined), _LINE)]
        return "\n".join((f"{BEGIN}{self.label}{_DASHES}", *lines, f"{_END}{self.label}{_DASHES}", ""))


def in_lines(text: str) -> str:
    """The keys and certificates of a text in ASCII, each in lines of its own; empty without any.

    Java's clients also take them in one line, as `.properties` files have them, or indented, and skip what
    is between (KIP-651; `PemParser` in Kafka's `DefaultSslEngineFactory`).
    """
    return "".join(map(str, _entries(text))).encode("ascii", "replace").decode()


def _entries(text: str) -> Iterator[_Entry]:
    """Yield entries in time that grows with the text alone, whatever it holds."""
    at = 0
    while (end := text.find(_END, at)) >= 0:
        closed = text.find(_DASHES, end + len(_END))
        begin = text.rfind(BEGIN, at, end)
        named = text.find(_DASHES, begin + len(BEGIN), end)
        at = end + len(_END)
        if min(begin, named, closed) >= 0:
            yield _Entry(text[begin + len(BEGIN) : named].strip(), text[named + len(_DASHES) : end])
