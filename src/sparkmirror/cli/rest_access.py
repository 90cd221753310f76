"""Finds the REST API of a command, and the credentials for it, from options of the command line.

Passwords and tokens are read from files: a command line is visible to all users of a machine.
"""

import argparse
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sparkmirror.cli.arguments import not_empty
from sparkmirror.client.connect_rest import Access, ConnectRest
from sparkmirror.config.properties import read_text
from sparkmirror.domain.errors import ConfigError

DEFAULT_URL: Final = "http://localhost:8083"


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--url` and the options for credentials, which `connected` reads."""
    parser.add_argument("--url", metavar="URL", help=f"any worker's REST API ({DEFAULT_URL})")
    add_login_arguments(parser)


def add_login_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for credentials to a command that takes its URL as an argument."""
    login = parser.add_argument_group("login of the REST API")
    login.add_argument(
        "--user", type=not_empty, metavar="NAME", help="basic authentication; needs --password-file"
    )
    for name, what in (
        ("--password-file", "the user's password"),
        ("--token-file", "a bearer token, instead of a user"),
        ("--ca", "trusted CAs as PEM (default: those of the system)"),
        ("--cert", "client certificate as PEM"),
        ("--key", "its key as PEM, if the certificate's file doesn't hold it"),
    ):
        login.add_argument(name, type=Path, metavar="FILE", help=what)


def connected(arguments: argparse.Namespace, url: str | None = None) -> "closing[ConnectRest]":
    """A client of `url` or else of `--url`, for a `with`. Raises ConfigError."""
    return closing(ConnectRest(access_of(arguments, url or arguments.url)))


def access_of(arguments: argparse.Namespace, url: str | None) -> Access:
    """The URL and the credentials that were given. Raises ConfigError."""
    if (arguments.user is None) != (arguments.password_file is None):
        raise ConfigError("--user", arguments.user, "and --password-file belong together")
    if arguments.user is not None and arguments.token_file is not None:
        raise ConfigError("--token-file", None, "replaces --user and --password-file")
    if arguments.key is not None and arguments.cert is None:
        raise ConfigError("--key", None, "needs --cert")
    return Access(
        _url(url or DEFAULT_URL),
        arguments.user,
        None if arguments.password_file is None else read_text(arguments.password_file).rstrip("\r\n"),
        _pem(arguments, "ca"),
        _pem(arguments, "cert"),
        _pem(arguments, "key"),
        None if arguments.token_file is None else _token(arguments.token_file),
    )


def _url(text: str) -> str:
    """Add http:// unless there is a scheme. Raises ConfigError for an unusable URL."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError("--url", None, "is no URL") from None
    if "@" in parts.netloc:
        raise ConfigError("--url", None, "holds a password: use --user and --password-file")
    if not is_usable or parts.query or parts.fragment:
        raise ConfigError("--url", text, "is not of the form http://HOST:PORT or https://HOST:PORT")
    return url


def _token(file: Path) -> str:
    token = read_text(file).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("--token-file", None, "holds no token")
    return token


def _pem(arguments: argparse.Namespace, name: str) -> Path | None:
    file: Path | None = getattr(arguments, name)
    if file is not None and not file.is_file():
        raise ConfigError(f"--{name}", str(file), "is no file")
    return file
