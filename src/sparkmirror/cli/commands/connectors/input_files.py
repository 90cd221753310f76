"""Reads the settings of one connector from a file or standard input, JSON or properties."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.config.connector_texts import WrittenConnector
from sparkmirror.config.conversion import forms
from sparkmirror.config.properties import HIDDEN
from sparkmirror.domain.errors import ConfigError

STANDARD_INPUT: Final = Path("-")


class Given(NamedTuple):
    """`name` is given beside the settings; `remarks` are about how they are written."""

    name: str | None
    config: Mapping[str, str]
    remarks: tuple[str, ...] = ()


def read_file(file: Path) -> Given:
    """Read settings, from standard input for `-`. Raises ConfigError, never with a secret in it."""
    name = "standard input" if file == STANDARD_INPUT else str(file)
    given = forms.File(name, sys.stdin.read()) if file == STANDARD_INPUT else forms.read_file(file)
    found = _only(forms.connectors_in(given), name)
    for key, value in found.settings.items():
        if HIDDEN in value:  # it must not overwrite the secret
            raise ConfigError(key, HIDDEN, "is the placeholder of a masked secret")
    return Given(found.name, dict(found.settings), found.remarks)


def _only(found: list[WrittenConnector], name: str) -> WrittenConnector:
    if len(found) != 1:
        raise ConfigError(name, None, f"holds {len(found)} connectors: one is expected")
    unknown = set(found[0].beside or ()) - {"name"}
    if unknown:
        raise ConfigError(name, None, f"has {', '.join(sorted(unknown))} beside its config")
    return found[0]
