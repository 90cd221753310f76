"""Escapes what a terminal or browser would interpret in texts that strangers chose, as names of groups."""

import json


def printable(text: str) -> str:
    """Put text on one line, and escape control characters and those that change the direction of writing."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def printable_json(content: object, *, indent: int | None = None) -> str:
    """JSON with letters as they are, and with all that is not printable as escapes."""
    text = json.dumps(content, indent=indent, ensure_ascii=False, default=str)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
