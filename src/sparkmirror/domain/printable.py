"""Escapes what a terminal or browser would interpret in texts that strangers chose, as names of groups."""


def printable(text: str) -> str:
    """On one line, with control characters escaped, those that change the direction of writing among them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
