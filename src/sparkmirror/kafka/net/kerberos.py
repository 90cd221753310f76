"""Logs in by Kerberos: kafka-python's mechanism, with tickets of the key table or cache that JAAS names.

MIT's library gets a ticket by itself with a key table, and a new one when it has expired.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.extras import how_to_install
from sparkmirror.domain.sasl import KerberosLogin
from sparkmirror.files import NamedFile

HOW_TO_INSTALL: Final = f"GSSAPI needs gssapi: {how_to_install('gssapi')}"


class Gssapi(SaslMechanismGSSAPI):  # type: ignore[misc]  # kafka-python has no types here
    """Logs in once. It asks the KDC for tickets, which may block. Raises AuthenticationError."""

    def __init__(self, login: KerberosLogin, host: str) -> None:
        try:
            import gssapi  # noqa: PLC0415 - an extra
        except (ImportError, OSError) as error:
            raise AuthenticationError(f"{HOW_TO_INSTALL} ({error})") from error
        # Instead of the library's own constructor, which knows the default ticket cache only.
        self._errors: type[Exception] = gssapi.exceptions.GSSError
        self._is_done = self._is_authenticated = False
        self.auth_id = f"{login.service}@{host}"
        try:
            with _opened(login) as store:
                self._client_ctx = _context(gssapi, login, store, self.auth_id)
                self._next_token = self._client_ctx.step(None)
        except OSError as error:
            text = f"can't read {_file(login)}: {error.strerror}"
            raise AuthenticationError(text) from error
        except self._errors as error:
            raise AuthenticationError(
                f"gets no Kerberos ticket for {self.auth_id} by {_source(login)}: {_reason(error)}"
            ) from error

    def receive(self, auth_bytes: bytes) -> None:
        try:
            super().receive(auth_bytes)
        except self._errors as error:
            raise AuthenticationError(f"sent what is no answer of GSSAPI: {_reason(error)}") from error


@contextmanager
def _opened(login: KerberosLogin) -> Iterator[Mapping[str, str]]:
    """Return where the library finds keys and tickets. A file that must lie below a folder is opened here."""
    file = _file(login)
    if file is None:
        yield {}
        return
    if not login.roots:
        yield _store(login, file)
        return
    number = NamedFile(file, login.roots).opened()
    try:
        yield _store(login, f"/dev/fd/{number}")
    finally:
        os.close(number)


def _store(login: KerberosLogin, file: str) -> Mapping[str, str]:
    if login.keytab is None:
        return {"ccache": f"FILE:{file}"}
    # A cache of its own for each principal and key table, in memory: the default one may be another's.
    cache = f"{abs(hash((login.principal, login.keytab))):x}"
    return {"client_keytab": f"FILE:{file}", "ccache": f"MEMORY:sparkmirror-{cache}"}


def _file(login: KerberosLogin) -> str | None:
    return login.ticket_cache if login.keytab is None else login.keytab


def _context(gssapi: Any, login: KerberosLogin, store: Mapping[str, str], service: str) -> Any:
    kerberos = gssapi.MechType.kerberos
    name = gssapi.Name(service, name_type=gssapi.NameType.hostbased_service).canonicalize(kerberos)
    principal = None
    if login.principal is not None:
        principal = gssapi.Name(login.principal, name_type=gssapi.NameType.kerberos_principal)
    credentials = gssapi.Credentials(
        name=principal, usage="initiate", mechs=[kerberos], store=dict(store) or None
    )
    return gssapi.SecurityContext(name=name, creds=credentials, usage="initiate", mech=kerberos)


def _source(login: KerberosLogin) -> str:
    if login.keytab is not None:
        # MIT's library does not say what is wrong with a key table; its own command does.
        return f"{login.keytab} (try `kinit -k -t {login.keytab} {login.principal}`)"
    return login.ticket_cache or "the default ticket cache"


def _reason(error: Exception) -> str:
    """Return Kerberos's explanation: the text of the minor status, in one line."""
    minor = str(error).rpartition("Minor (")[2].partition("): ")[2]
    return " ".join((minor or str(error)).split())
