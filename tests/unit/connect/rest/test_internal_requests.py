import base64

import pytest

from sparkmirror.connect.rest.internal_requests import (
    ALGORITHM_HEADER,
    SIGNATURE_HEADER,
    require_signature,
    signature,
)
from sparkmirror.domain.connect import ConnectError

KEY = b"key"
BODY = b"The quick brown fox jumps over the lazy dog"
SIGNED = "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg="
"""HMAC-SHA256 of that text, as Wikipedia has it."""


def headers(encoded: str = SIGNED, algorithm: str = "HmacSHA256") -> dict[str, str]:
    return {SIGNATURE_HEADER: encoded, ALGORITHM_HEADER: algorithm}


def test_a_signature_equals_javas() -> None:
    assert base64.b64encode(signature(KEY, "HmacSHA256", BODY)).decode() == SIGNED


def test_a_signed_request_is_accepted() -> None:
    require_signature(headers(), BODY, KEY, ["HmacSHA256"])


@pytest.mark.parametrize(
    ("said", "key", "status", "words"),
    [
        ({}, KEY, 400, "Internal request missing required signature"),
        (headers("aaaa"), KEY, 403, "Internal request contained invalid signature."),
        (headers("é"), KEY, 400, ""),
        (headers(algorithm="HmacBogus"), KEY, 400, "Algorithm HmacBogus not available"),
        (headers(algorithm="HmacMD5"), KEY, 400, "does not support the 'HmacMD5' key signing algorithm"),
        (headers(), b"other", 403, "Internal request contained invalid signature."),
        (headers(), None, 503, "has not been able to read a session key"),
    ],
)
def test_an_unsigned_or_wrongly_signed_request_is_refused(
    said: dict[str, str], key: bytes | None, status: int, words: str
) -> None:
    with pytest.raises(ConnectError) as raised:
        require_signature(said, BODY, key, ["HmacSHA256"])
    assert raised.value.status == status
    assert words in str(raised.value)
