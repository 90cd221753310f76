"""Makes OpenSSL contexts from TLS settings, and makes them again when a store's file changes."""

import logging
import os
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.file_version import FileVersion, file_version
from sparkmirror.security.stores import Keys, read_keys, read_trusted, remedy_of_old_key

_log = logging.getLogger(__name__)

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Reads the stores; the default trust store is the system's. Raises ConfigError."""
    context = new_context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.checks_host_names
    if settings.trust_store is None:
        context.load_default_certs()
    configure(context, settings)
    return context


def new_context(protocol: int) -> ssl.SSLContext:
    """Raises ConfigError where this machine's OpenSSL can do nothing at all."""
    try:
        return ssl.SSLContext(protocol)
    except ssl.SSLError as error:
        reason = (
            "This machine's OpenSSL has no cipher suite. In FIPS mode: is its provider installed and active?"
        )
        raise ConfigError("security.protocol", "SSL", f"{reason} `openssl list -providers` tells") from error


def configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set versions and ciphers, and load the stores that there are. Raises ConfigError."""
    versions = sorted(_VERSIONS[name] for name in settings.versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if settings.ciphers:
        try:
            context.set_ciphers(":".join(settings.ciphers))
        except ssl.SSLError as error:
            reason = "this OpenSSL offers none of them"
            raise ConfigError("ssl.cipher.suites", ",".join(settings.ciphers), reason) from error
    store = settings.trust_store
    if store is not None:
        try:
            context.load_verify_locations(cadata=read_trusted(store))
        except (ssl.SSLError, ValueError) as error:  # ValueError where there is none
            reason = f"It holds no usable certificate: {error}"
            raise ConfigError(f"{store.option}.location", store.location, reason) from error
    if settings.key_store is not None:
        _load_keys(context, read_keys(settings.key_store, settings.key_password), settings.key_store.location)


def _load_keys(context: ssl.SSLContext, keys: Keys, location: str | None) -> None:
    try:
        with key_file(keys.pem) as file:
            # Without a password Python would prompt at the terminal.
            context.load_cert_chain(file, password=keys.password or "")
    except (ssl.SSLError, ValueError) as error:
        reason = f"The key can't be used, or not with ssl.key.password: {error}{remedy_of_old_key(keys.pem)}"
        raise ConfigError("ssl.keystore.location", location, reason) from error


class _Made(NamedTuple):
    context: ssl.SSLContext
    settings: TlsSettings
    versions: tuple[FileVersion | None, ...]


class KeptContexts:
    """Keeps a context for each settings, so most connections read no store. Thread-safe."""

    def __init__(self, make: Callable[[TlsSettings], ssl.SSLContext]) -> None:
        """`make` raises ConfigError."""
        self._make = make
        self._made: dict[TlsSettings, _Made] = {}
        self._refused: dict[TlsSettings, str] = {}
        self._lock = threading.Lock()

    def context_of(self, settings: TlsSettings) -> ssl.SSLContext:
        """Return a context with what stores and passwords are now.

        Raises ConfigError if they could never be read.

        What can be read no longer, for instance because it is being written, counts as it was.
        """
        with self._lock:
            made = self._made.get(settings)
            try:
                self._made[settings] = found = self._current(settings.current(), made)
            except ConfigError as error:
                if made is None:
                    raise
                if self._refused.get(settings) != str(error):
                    self._refused[settings] = str(error)
                    _log.warning("a changed store can't be used, the one before is kept: %s", error)
                return made.context
            self._refused.pop(settings, None)
            return found.context

    def _current(self, settings: TlsSettings, made: _Made | None) -> _Made:
        versions = tuple(map(file_version, settings.files))
        if made is not None and (made.settings, made.versions) == (settings, versions):
            return made
        return _Made(self._make(settings), settings, versions)


class ClientContexts(KeptContexts):
    """Keeps the contexts of clients."""

    def __init__(self) -> None:
        super().__init__(client_context)


@contextmanager
def key_file(text: str) -> Iterator[Path]:
    """A file in memory, where the system has such files; else one that only this user reaches."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("key"), "w") as file:
            file.write(text)
            file.flush()
            yield Path(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.TemporaryDirectory() as folder:  # 0700
        path = Path(folder, "key.pem")
        path.touch(0o600)
        path.write_text(text)
        yield path
