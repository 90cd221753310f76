"""Finds what looks like a comment behind a value: properties files have none there. Pure."""

import re
from typing import Final

NO_COMMENTS: Final = "properties files have no comments behind values, only on lines of their own"
_COMMENT: Final = re.compile(r"\s+#.*", re.DOTALL)


def comment_in(value: str) -> str:
    """Return what looks like a comment behind a value; empty where nothing does."""
    found = _COMMENT.search(value)
    return found[0] if found else ""


def is_part(comment: str) -> str:
    """Say what a comment behind a value is."""
    return f"'{comment}' is part of the value: {NO_COMMENTS}"
