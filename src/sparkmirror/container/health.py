"""Asks the command of this container how it is: exit code 0 when `/health` answers 200.

The entry notes the URL, or that there is none. This is a program of its own, which imports nothing of this
package, because it runs every few seconds.
"""

import json
import ssl
import sys
import tempfile
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

NOTHING_SERVED: Final = "none"
_TIMEOUT_S: Final = 5.0

_SERVED: Final = {"run": None, "watch": "127.0.0.1:8080"}
"""Commands that serve what `--http` names, and where they do without it."""
_WORKER_DEFAULT: Final = "http://:8083"
_WITHOUT_VALUE: Final = ("-v", "--verbose", "-h", "--help")
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - nothing is bound here


def place() -> Path:
    """The file that holds the URL to ask, or `NOTHING_SERVED`. Raises OSError where it can't be written."""
    return Path(tempfile.gettempdir()) / "sparkmirror-health"


def health_url(words: Sequence[str], listeners: Callable[[str], str | None]) -> str | None:
    """Return the URL of a command of sparkmirror's, None for one that serves none.

    `listeners` reads a worker's file.
    """
    command, rest = (words[0], words[1:]) if words else ("", ())
    if command in _SERVED:
        at = option(rest, "--http") or _SERVED[command]
        return None if not at else _url(f"http://{at}" if ":" in at else f"http://:{at}")
    if command != "worker":
        return None
    file = _file(rest)
    found = None if file is None else listeners(file)
    return _url((found or _WORKER_DEFAULT).split(",")[0].strip())


def option(words: Sequence[str], name: str) -> str | None:
    """Return the value of an option, of which the last one counts."""
    found = None
    for word, after in zip(words, [*words[1:], None], strict=False):
        if word == name:
            found = after
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def _file(words: Sequence[str]) -> str | None:
    """The first argument that is neither an option nor its value."""
    is_value = False
    for word in words:
        if not is_value and not word.startswith("-"):
            return word
        is_value = not is_value and "=" not in word and word not in _WITHOUT_VALUE
    return None


def _url(listener: str) -> str | None:
    try:
        address = urlsplit(listener.lower())
        host, port = address.hostname or "", address.port
    except ValueError:
        return None
    if host in _EVERY_ADDRESS:
        host = "::1" if host == "::" else "127.0.0.1"
    at = f"[{host}]" if ":" in host else host
    return f"{address.scheme}://{at}:{port}/health" if port else None


def main() -> int:
    url = _noted()
    if not url:
        print("the command of this container has not started")  # noqa: T201 - Docker keeps the output
        return 1
    if url == NOTHING_SERVED:
        print("the command of this container serves no /health")  # noqa: T201 - likewise
        return 0
    try:
        status, text = _answer(url)
    except (OSError, HTTPException) as error:
        print(f"{url}: {error}")  # noqa: T201 - likewise
        return 1
    print(f"{status} {text}")  # noqa: T201 - likewise
    return 0 if status == 200 else 1


def _noted() -> str:
    try:
        return place().read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _answer(url: str) -> tuple[int, str]:
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port
    connection = (
        HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=_unverified())
        if address.scheme == "https"
        else HTTPConnection(host, port, timeout=_TIMEOUT_S)
    )
    connection.request("GET", address.path)
    response = connection.getresponse()
    body = response.read().decode(errors="replace")
    try:
        return response.status, str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return response.status, body[:200]


def _unverified() -> ssl.SSLContext:
    """Skip verification: the certificate of this container has another name than the loopback address."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


if __name__ == "__main__":
    sys.exit(main())
