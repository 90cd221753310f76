"""Escapes what a terminal would interpret in texts that strangers chose, such as names of groups."""


def printable(text: str) -> str:
    """On one line, with control characters escaped, which a terminal would interpret."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
