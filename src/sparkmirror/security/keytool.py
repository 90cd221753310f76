"""Reads stores with the JRE's `keytool`, as Java does; passwords go to it by its environment."""

import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.domain.errors import NotInstalledError
from sparkmirror.java.find_java import find_java

_TIMEOUT_S: Final = 30.0
_STORE, _KEY, _COPY = "SPARKMIRROR_STORE", "SPARKMIRROR_KEY", "SPARKMIRROR_COPY"
_ALIAS, _IS_KEY = "Alias name: ", "Entry type: PrivateKeyEntry"


class KeytoolError(Exception):
    """Holds what keytool said, in one line."""


class Converted(NamedTuple):
    """A PKCS12 store and its password."""

    data: bytes
    password: str


def certificates(store: bytes, password: str | None) -> str:
    """Read all certificates of a JKS or PKCS12 store as PEM. Raises KeytoolError."""
    given = [] if password is None else ["-storepass:env", _STORE]
    with _as_file(store) as location:
        return _run(["-list", "-rfc", "-keystore", location, *given], {_STORE: password})


def as_pkcs12(store: bytes, password: str | None, key_password: str | None) -> Converted:
    """The first key of a JKS store with its certificates. Raises KeytoolError."""
    with _as_file(store) as location:
        return _converted(location, {_STORE: password or ""}, key_password)


@contextmanager
def _as_file(store: bytes) -> Iterator[str]:
    """Write what was read, not what is there now. The keys are encrypted; this user alone can read it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "store")
        file.write_bytes(store)
        yield str(file)


def _converted(location: str, store: Mapping[str, str], key_password: str | None) -> Converted:
    source = ["-srckeystore", location, "-srcstoretype", "JKS", "-srcstorepass:env", _STORE]
    if key_password is not None:
        source += ["-srcalias", _alias_of_key(location, store), "-srckeypass:env", _KEY]
    copy = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory() as folder:  # readable by this user only
        file = Path(folder, "store.p12")
        made = ["-destkeystore", str(file), "-deststoretype", "PKCS12", "-deststorepass:env", _COPY]
        passwords = {**store, _KEY: key_password, _COPY: copy}
        _run(["-importkeystore", "-noprompt", *source, *made], passwords)
        return Converted(file.read_bytes(), copy)


def _alias_of_key(location: str, passwords: Mapping[str, str]) -> str:
    listed = _run(["-list", "-v", "-keystore", location, "-storepass:env", _STORE], passwords)
    alias = ""
    for line in listed.splitlines():
        if line.startswith(_ALIAS):
            alias = line.removeprefix(_ALIAS)
        elif line == _IS_KEY:
            return alias
    raise KeytoolError("it holds no key")


def _run(arguments: Sequence[str], passwords: Mapping[str, str | None] | Mapping[str, str]) -> str:
    try:
        keytool = Path(find_java().executable).with_name("keytool")
    except NotInstalledError as error:
        raise KeytoolError(str(error)) from error
    known = {name: text for name, text in passwords.items() if text is not None}
    command = [str(keytool), *arguments, "-J-Duser.language=en"]
    try:
        ran = subprocess.run(  # noqa: S603 - the JRE's own
            command,
            input="\n",  # no password: it asks, and reads on without one
            env={**os.environ, **known},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KeytoolError(f"{keytool} does not run: {error}") from error
    if ran.returncode:
        raise KeytoolError(_reason(ran.stdout + ran.stderr))
    return ran.stdout


def _reason(output: str) -> str:
    said = [line for line in output.splitlines() if line.startswith("keytool error:")]
    return (
        said[0].removeprefix("keytool error:").strip() if said else f"keytool failed: {output.strip()[-200:]}"
    )
