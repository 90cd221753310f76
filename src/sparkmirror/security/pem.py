"""Finds keys and certificates in PEM as Java's clients do, and writes them as OpenSSL reads them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

BEGIN: Final = "-----BEGIN "
_END: Final = "-----END "
_DASHES: Final = "-----"
_LINE: Final = 64


class _Entry(NamedTuple):
    label: str
    body: str

    def __str__(self) -> str:
        if ":" in self.body:  # headers of an old kind of encrypted key, which count by their lines
            lines = [self.body.strip()]
        else:
            joined = "".join(self.body.split())
            lines = [joined[at : at + _LINE] for at in range(0, len(joined), _LINE)]
        return "\n".join((f"{BEGIN}{self.label}{_DASHES}", *lines, f"{_END}{self.label}{_DASHES}", ""))


def in_lines(text: str) -> str:
    """The keys and certificates of a text in ASCII, each in lines of its own; empty without any.

    Java's clients also take them in one line, as `.properties` files have them, or indented, and skip what
    stands between (KIP-651; `PemParser` in Kafka's `DefaultSslEngineFactory`).
    """
    return "".join(map(str, _entries(text))).encode("ascii", "replace").decode()


def _entries(text: str) -> Iterator[_Entry]:
    """In time that grows with the text alone, whatever it holds."""
    at = 0
    while (end := text.find(_END, at)) >= 0:
        closed = text.find(_DASHES, end + len(_END))
        begin = text.rfind(BEGIN, at, end)
        named = text.find(_DASHES, begin + len(BEGIN), end)
        at = end + len(_END)
        if min(begin, named, closed) >= 0:
            yield _Entry(text[begin + len(BEGIN) : named].strip(), text[named + len(_DASHES) : end])
