"""Speaks TLS on a connected socket, and says what keeps a handshake from succeeding.

In TLS 1.3 a broker judges a client's certificate after the handshake, so its refusal arrives where the
first response is read.
"""

import datetime as dt
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, cast

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ConfigError, DisconnectedError
from sparkmirror.domain.network import host_port
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.tls_context import ClientContexts

_RECORD_BYTES: Final = 16 << 10
"""OpenSSL takes one buffer at a time, and sends each record of at most so many bytes by itself."""

_CONTEXTS: Final = ClientContexts()

_Names = Sequence[tuple[str, str]]
"""Kinds and names, as Python's ssl has them."""

_NAME_MISMATCH: Final = frozenset({62, 64})  # X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_EXPIRED: Final = 10
_NOT_YET_VALID: Final = 9
_CERTIFICATE_WANTED: Final = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")
_CERTIFICATE_REFUSED: Final = (
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "UNSUPPORTED_CERTIFICATE",
    "UNKNOWN_CA",
    "ACCESS_DENIED",
    "DECRYPT_ERROR",
)
_NOTHING_IN_COMMON: Final = (
    "HANDSHAKE_FAILURE",
    "PROTOCOL_VERSION",
    "UNSUPPORTED_PROTOCOL",
    "INSUFFICIENT_SECURITY",
    "NO_CIPHERS_AVAILABLE",
)


class TlsTransport:
    """A TCP socket with TLS: PlainTransport's four methods."""

    def __init__(self, sock: ssl.SSLSocket, address: str, explain: "_Explanations") -> None:
        self._sock = sock
        # Below `recv_into`: given a buffer, it returns how many bytes it read.
        self._read_record = cast("Callable[[int, memoryview], int]", sock.read)
        self._address = address
        self._explain = explain
        self._refused: bytes | memoryview = b""
        """OpenSSL wants what it did not take again, unchanged."""

    def fileno(self) -> int:
        return self._sock.fileno()

    def set_timeout(self, timeout_s: float) -> None:
        self._sock.settimeout(timeout_s)

    def receive_into(self, view: memoryview) -> int | None:
        # OpenSSL returns one record at a time, and a broker's are 11 KB long on average: a close loop.
        read_record, wanted, received = self._read_record, len(view), 0
        try:
            while received < wanted:
                record_bytes = read_record(wanted - received, view[received:])
                if record_bytes == 0:
                    break
                received += record_bytes
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, InterruptedError):
            return received or None
        except TimeoutError as error:
            raise DisconnectedError(f"{self._address} did not answer in time") from error
        except OSError as error:
            raise self._explain.lost(error) from error
        if received == 0:
            raise self._explain.closed()
        return received

    def send(self, buffers: Sequence[bytes | memoryview]) -> int:
        data = self._refused or next_records(buffers)
        try:
            sent = self._sock.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, InterruptedError):
            self._refused = data
            return 0
        except OSError as error:
            raise self._explain.lost(self._alert() or error) from error
        self._refused = b""
        return sent

    def close(self) -> None:
        self._sock.close()

    def _alert(self) -> OSError | None:
        """Why the broker closed the connection, if it said so before."""
        try:
            self._sock.recv(1)
        except ssl.SSLError as error:
            return error
        except (OSError, ValueError):
            return None
        return None


def next_records(buffers: Sequence[bytes | memoryview]) -> bytes | memoryview:
    """Return the bytes to send first: whole TLS records of a large buffer, uncopied, or joined pieces."""
    first = buffers[0]
    if len(first) >= _RECORD_BYTES:
        return memoryview(first)[: len(first) - len(first) % _RECORD_BYTES]
    if len(buffers) == 1:
        return first
    record = bytearray()
    for buffer in buffers:
        record += buffer[: _RECORD_BYTES - len(record)]
        if len(record) == _RECORD_BYTES:
            break
    return bytes(record)


Connect = Callable[[str, int, ConnectionSettings], socket.socket]


def connect_tls(host: str, port: int, settings: ConnectionSettings, connect: Connect) -> TlsTransport:
    """Read the stores, connect and shake hands, each within `connect_timeout_s`.

    Raises ConfigError, DisconnectedError.
    """
    assert settings.tls is not None, "settings with TLS have its settings"
    context = _CONTEXTS.context_of(settings.tls)
    address = host_port(host, port)
    explain = _Explanations(host, address, settings)
    sock = connect(host, port, settings)
    try:
        return TlsTransport(context.wrap_socket(sock, server_hostname=host), address, explain)
    except TimeoutError as error:
        sock.close()
        raise explain.silent() from error
    except OSError as error:
        sock.close()
        raise explain.not_shaken(error) from error


class _Explanations:
    """Explains a failed handshake in one line: cluster, address, cause and remedy."""

    def __init__(self, host: str, address: str, settings: ConnectionSettings) -> None:
        self._host = host
        self._at = f"{settings.cluster}: {address}"
        self._address = address
        self._settings = settings

    def silent(self) -> DisconnectedError:
        limit_s = self._settings.connect_timeout_s
        return self._error(f"did not answer the TLS handshake within {limit_s:g} s. {self._about_plaintext}")

    def not_shaken(self, error: OSError) -> DisconnectedError:
        match error:
            case ssl.SSLCertVerificationError():
                return self._error(self._distrust(error))
            case ssl.SSLEOFError() | ConnectionError():
                return self._error(f"ended the TLS handshake. {self._about_plaintext}")
            case ssl.SSLError():
                return self._error(self._alert(error))
            case _:
                return self._error(f"the TLS handshake failed: {error}")

    def lost(self, error: OSError) -> DisconnectedError:
        if isinstance(error, ssl.SSLEOFError):
            return self.closed()
        if isinstance(error, ssl.SSLError):
            return self._error(self._alert(error))
        return DisconnectedError(f"{self._address}: {error}")

    def closed(self) -> DisconnectedError:
        return DisconnectedError(f"{self._address} closed the connection")

    def _error(self, text: str) -> DisconnectedError:
        return DisconnectedError(f"{self._at} {text}")

    @property
    def _about_plaintext(self) -> str:
        protocol = self._settings.security_protocol.value
        plaintext = "SASL_PLAINTEXT" if protocol == "SASL_SSL" else "PLAINTEXT"
        return f"If it is a port without TLS, set security.protocol={plaintext} instead of {protocol}"

    def _distrust(self, error: ssl.SSLCertVerificationError) -> str:
        if error.verify_code in _NAME_MISMATCH:
            names = self._certificate_names()
            return (
                f"has a certificate for {names or 'other names'}, not for {self._host}: use such a name in "
                "bootstrap.servers and the broker's advertised.listeners, or turn the check off by an empty "
                "ssl.endpoint.identification.algorithm"
            )
        if error.verify_code == _EXPIRED:
            return f"has a certificate that has expired, as it is {_now()} here: renew it on the broker"
        if error.verify_code == _NOT_YET_VALID:
            return f"has a certificate that is not valid yet, as it is {_now()} here: check the clocks"
        return (
            f"has a certificate that {self._trusted_by} does not trust ({error.verify_message}): "
            "add the certificate of its authority, and check ssl.truststore.location"
        )

    @property
    def _current_tls(self) -> TlsSettings | None:
        with suppress(ConfigError):
            return None if self._settings.tls is None else self._settings.tls.current()
        return None

    @property
    def _trusted_by(self) -> str:
        tls = self._current_tls
        store = None if tls is None else tls.trust_store
        if store is None:
            return "the system (ssl.truststore.location is not set)"
        return store.location or "ssl.truststore.certificates"

    def _alert(self, error: ssl.SSLError) -> str:
        reason = str(error.reason or error)
        said = re.sub(r"^(?:TLSV1[_3]*|SSLV3)_(?:ALERT_)?", "", reason).replace("_", " ").lower()
        tls = self._current_tls
        has_keys = tls is not None and tls.key_store is not None
        if not has_keys and reason.endswith(_CERTIFICATE_WANTED):
            return f"wants a client certificate: set ssl.keystore.location ({said})"
        if has_keys and reason.endswith(_CERTIFICATE_REFUSED):
            return f"refused the client certificate of ssl.keystore.location: {said}"
        if reason.endswith(_NOTHING_IN_COMMON):
            return (
                "speaks no TLS version and cipher suite that is enabled here: check ssl.enabled.protocols "
                f"and ssl.cipher.suites ({said})"
            )
        if reason.endswith(("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")):
            return f"speaks no TLS. {self._about_plaintext}"
        return f"ended TLS: {said}"

    def _certificate_names(self) -> str:
        """Return the names in the broker's certificate, which is trusted except for its names."""
        settings = self._settings
        assert settings.tls is not None
        with suppress(OSError):
            context = _CONTEXTS.context_of(settings.tls)
            unnamed = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            unnamed.check_hostname = False
            for certificate in context.get_ca_certs(binary_form=True):
                unnamed.load_verify_locations(cadata=certificate)
            host, _, port = self._address.rpartition(":")
            with (
                socket.create_connection((host, int(port)), settings.connect_timeout_s) as sock,
                unnamed.wrap_socket(sock) as wrapped,
            ):
                names = cast("_Names", (wrapped.getpeercert() or {}).get("subjectAltName", ()))
                return ", ".join(name for _, name in names)
        return ""


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
