"""Escapes characters that an output stream's encoding lacks, instead of failing on them.

The escapes are those of JSON, so that JSON stays JSON.
"""

import codecs
import json
from io import TextIOWrapper
from typing import TextIO

_HANDLER = "sparkmirror.escape"


def escape_unencodable(*streams: TextIO) -> None:
    """Let these streams escape what they can't encode; replaced streams, as in tests, are left alone."""
    codecs.register_error(_HANDLER, _escape)
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
