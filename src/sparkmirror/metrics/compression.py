"""Compresses pages for clients that take gzip, each page once."""

import zlib
from functools import lru_cache
from typing import Final

_QUICK: Final = 1
_GZIP: Final = 16 + zlib.MAX_WBITS


@lru_cache(maxsize=1)
def gzipped(body: bytes) -> bytes:
    """Pages repeat themselves: the quickest level makes a twentieth of one."""
    compressor = zlib.compressobj(_QUICK, zlib.DEFLATED, _GZIP)
    return compressor.compress(body) + compressor.flush()


def takes_gzip(accept_encoding: str | None) -> bool:
    """Return whether a client's Accept-Encoding allows gzip (RFC 9110, 12.5.3)."""
    for item in (accept_encoding or "").lower().split(","):
        name, _, weight = item.partition(";")
        if name.strip() in ("gzip", "x-gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
