"""Finds the Connect REST API of a command by `--url` or by a context, a name for it in a user's file.

    current: prod               # without --url and --context; optional
    contexts:
      prod:
        url: https://connect-1.example.com:8083
        user: ops               # basic authentication
        password_env: CONNECT_PASSWORD
        ca: /etc/ssl/connect-ca.pem

Passwords and tokens are in an environment variable or in a file of their own: never there, and on no command
line.
"""

import argparse
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sparkmirror.client.connect_rest import Access, ConnectRest
from sparkmirror.config.conversion.yaml_section import Section, documents
from sparkmirror.config.properties import read_text
from sparkmirror.domain.errors import ConfigError

DEFAULT_URL: Final = "http://localhost:8083"
CONTEXTS_HELP: Final = """\
A context is a name for a Connect REST API, in $XDG_CONFIG_HOME/sparkmirror/contexts.yaml (by default
~/.config/sparkmirror/contexts.yaml):

  current: prod                     # without --url and --context; optional
  contexts:
    prod:
      url: https://connect-1.example.com:8083
      user: ops                     # basic authentication; the password is elsewhere:
      password_env: CONNECT_PASSWORD          # in this variable, or in the file that password_file names
      ca: /etc/ssl/connect-ca.pem   # trusted CAs (default: those of the system)
      cert: /etc/ssl/me.pem         # client certificate, where the worker asks for one
      key: /etc/ssl/me.key
    test:
      url: https://connect-test.example.com:8083
      token_env: CONNECT_TOKEN      # a bearer token; or token_file
"""
_KEYS: Final = (
    *("url", "user", "password_env", "password_file", "token_env", "token_file"),
    *("ca", "cert", "key"),
)
_WRITTEN_OUT: Final = ("password", "token")


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--url` and `--context`, which `connected` reads."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--url",
        metavar="URL",
        help=f"any worker's REST API (default: that of the current context, or {DEFAULT_URL})",
    )
    choice.add_argument(
        "--context",
        metavar="NAME",
        help="a REST API of contexts.yaml: see `sparkmirror connectors contexts --help`",
    )


def connected(arguments: argparse.Namespace) -> "closing[ConnectRest]":
    """A client to be used in a `with`. Raises ConfigError for an unusable URL or context."""
    return closing(ConnectRest(access_of(arguments)))


def is_url(text: str) -> bool:
    """Whether an argument that may be something else means the URL of an API."""
    return text.startswith(("http://", "https://"))


def contexts_file(environment: Mapping[str, str] = os.environ) -> Path:
    home = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "sparkmirror" / "contexts.yaml"


class Contexts:
    """The contexts of the file; none without a file. Raises ConfigError naming what is wrong with it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        found = documents(read_text(file), str(file)) if file.exists() else []
        root = Section(found[0] if found else {}, str(file))
        named = root.section("contexts")
        self._sections = {} if named is None else {name: named.needed_section(name) for name in named}
        self.current = root.text("current")
        self._refuse_unknown(root)

    @property
    def urls(self) -> dict[str, str]:
        """By the names of the contexts."""
        return {name: _url(section.needed("url"), section.path) for name, section in self._sections.items()}

    def access(self, name: str, environment: Mapping[str, str]) -> Access:
        """The context's URL, user, password and certificates. Raises ConfigError."""
        if name not in self._sections:
            known = ", ".join(self._sections) or "none"
            raise ConfigError(str(self._file), None, f"has no context {name} (it has: {known})")
        section = self._sections[name]
        cert, key = _pem(section, "cert"), _pem(section, "key")
        if key is not None and cert is None:
            raise ConfigError(section.path, None, "has a key without a cert")
        user = section.text("user")
        has_token = any(section.text(f"token_{place}") is not None for place in ("env", "file"))
        if has_token and user is not None:
            raise ConfigError(section.path, None, "has both a user and a token")
        return Access(
            _url(section.needed("url"), section.path),
            user,
            None if user is None else _secret(section, "password", environment),
            _pem(section, "ca"),
            cert,
            key,
            _token(section, environment) if has_token else None,
        )

    def _refuse_unknown(self, root: Section) -> None:
        """Above all a password that is written out."""
        for section in self._sections.values():
            for key in _KEYS:
                section.text(key)
        for path in root.left_over():
            reason = f"is not known; a context has {', '.join(_KEYS)}"
            name = path.rpartition(".")[2]
            if name in _WRITTEN_OUT:
                reason = f"must not be here: name its place by {name}_env or {name}_file"
            raise ConfigError(path, None, reason)


def access_of(arguments: argparse.Namespace) -> Access:
    if arguments.url is not None:
        return Access(_url(arguments.url, "--url"))
    contexts = Contexts(contexts_file())
    name = arguments.context or contexts.current
    return Access(DEFAULT_URL) if name is None else contexts.access(name, os.environ)


def _url(text: str, origin: str) -> str:
    """With http:// unless it has a scheme."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError(origin, None, "is no URL") from None
    if "@" in parts.netloc:
        raise ConfigError(origin, None, "holds a password, which belongs into a context: password_env")
    if not is_usable or parts.query or parts.fragment:
        raise ConfigError(origin, text, "is not of the form http://HOST:PORT or https://HOST:PORT")
    return url


def _token(section: Section, environment: Mapping[str, str]) -> str:
    token = _secret(section, "token", environment).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(section.path, None, "names a place that holds no token")
    return token


def _secret(section: Section, kind: str, environment: Mapping[str, str]) -> str:
    name, file = section.text(f"{kind}_env"), section.text(f"{kind}_file")
    if (name is None) == (file is None):
        beside = " beside its user" if kind == "password" else ""
        raise ConfigError(section.path, None, f"needs {kind}_env or {kind}_file{beside}, not both")
    if name is None:
        return read_text(Path(str(file)).expanduser()).rstrip("\r\n")
    if name not in environment:
        raise ConfigError(f"{section.path}.{kind}_env", name, "is no environment variable that is set")
    return environment[name]


def _pem(section: Section, key: str) -> Path | None:
    text = section.text(key)
    if text is None:
        return None
    file = Path(text).expanduser()
    if not file.is_file():
        raise ConfigError(f"{section.path}.{key}", text, "is no file")
    return file
