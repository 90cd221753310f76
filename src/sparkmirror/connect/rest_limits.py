"""Refuses classes and files that a REST config may not name: its author is not the worker's."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import ALLOWED_PATHS, ALLOWED_URLS, WORKER
from sparkmirror.connect.validation.classes import PLUGIN_KEYS, module_problem, plugin_modules

_FILES: Final = (
    "sync.users",
    "ssl.keystore.location",
    "ssl.truststore.location",
    "keyTab",
    "ticketCache",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
)
"""The options, also of login modules, whose value is the path of a file that the worker reads."""
_URLS: Final = ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url")
"""The options whose value is a URL that the worker reads (CVE-2025-27817)."""


def require_allowed(connector: Properties, worker: Properties) -> None:
    """Raise ConfigError for a module or file that the worker's properties don't allow; import nothing."""
    modules = plugin_modules(worker)
    for key in PLUGIN_KEYS & connector.keys():
        problem = module_problem(connector[key], modules)
        if problem is not None:
            raise connector.error(key, problem)
    for key in sorted(connector.keys()):
        if key.endswith(_URLS) and connector[key].strip() not in _items(worker, ALLOWED_URLS):
            raise connector.error(key, f"is none of the worker's {ALLOWED_URLS}")
        for path in _files_of(key, connector[key]):
            if path and not _is_below(path, allowed_folders(worker)):
                raise connector.error(key, f"is not below a folder of the worker's {ALLOWED_PATHS}")


def allowed_folders(worker: Properties) -> tuple[str, ...]:
    """The folders below which files of REST configs lie. They are looked at again when a file is opened."""
    return tuple(filter(None, _items(worker, ALLOWED_PATHS)))


def _files_of(key: str, value: str) -> Iterator[str]:
    """The files that the value of an option names; a login module has stores for its token endpoint."""
    if key.endswith(_FILES):
        yield value.strip()
    elif key.endswith("sasl.jaas.config"):
        with suppress(ValueError):  # what can't be parsed is refused as a login
            yield from (text for name, text in parse_jaas(value).options.items() if name.endswith(_FILES))


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    if "\0" in path:
        return False
    real = os.path.realpath(path)
    roots = [os.path.realpath(folder) for folder in folders]
    return any(os.path.commonpath((real, root)) == root for root in roots)


def _items(worker: Properties, key: str) -> tuple[str, ...]:
    value = WORKER[key].parse(worker.get(key, ""))
    assert isinstance(value, tuple)
    return value
