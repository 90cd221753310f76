"""Hides the secrets of a connector's config from those who may only read it."""

import re
from collections.abc import Mapping
from typing import Final

from sparkmirror.config.properties import HIDDEN, is_sensitive, without_user_info

_WRITTEN_OUT: Final = re.compile(
    r"(?P<name>(?:password|passphrase|secret|token)[\"']?\s*[=:]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s,;\"']+)",
    re.IGNORECASE,
)
"""A password in the text of another setting, as in that of a login module."""


def masked(config: Mapping[str, str]) -> dict[str, str]:
    """`[hidden]` for each value of a secret setting, and for the secrets within other values.

    A value that is nothing but a placeholder of a config provider stays: it only tells where the secret is.
    """
    return {key: _masked_value(key, value) for key, value in config.items()}


def _masked_value(key: str, value: str) -> str:
    if not value or _is_placeholder(value):
        return value
    if is_sensitive(key):
        return HIDDEN
    return _WRITTEN_OUT.sub(rf"\g<name>{HIDDEN}", without_user_info(value))


def _is_placeholder(value: str) -> bool:
    return value.startswith("${") and value.find("}") == len(value) - 1
