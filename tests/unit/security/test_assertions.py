"""Assertions that ask for tokens: what they say, and that their keys have signed them."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.sasl import Assertion
from sparkmirror.security.assertions import assertion_of

NOW = 1_700_000_000.9
CLAIMS = (("iss", "me"), ("aud", "https://issuer"))


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def content(assertion: str) -> tuple[Mapping[str, Any], Mapping[str, Any], bytes, bytes]:
    """Header, claims, what is signed, and the signature."""
    header, claims, signature = assertion.split(".")
    return (
        json.loads(decoded(header)),
        json.loads(decoded(claims)),
        f"{header}.{claims}".encode(),
        decoded(signature),
    )


def stored(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, file: Path, password: str | None = None
) -> str:
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return str(file)


def test_times_and_claims_are_those_of_the_settings(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    file = stored(key, tmp_path / "key", "hush")
    settings = Assertion(key_file=file, passphrase="hush", claims=CLAIMS, expires_s=10, valid_before_s=5)
    header, claims, signed, signature = content(assertion_of(settings, NOW))
    assert header == {"alg": "RS256", "typ": "JWT"}
    assert claims == dict(CLAIMS) | {"iat": 1_700_000_000, "exp": 1_700_000_010, "nbf": 1_699_999_995}
    key.public_key().verify(signature, signed, padding.PKCS1v15(), SHA256())


def test_a_template_adds_to_both_parts_and_ids_differ(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    template = tmp_path / "template.json"
    template.write_text('{"header": {"kid": "k1"}, "payload": {"aud": "other", "role": "mirror"}}')
    settings = Assertion(
        key_file=stored(key, tmp_path / "key"),
        algorithm="ES256",
        template_file=str(template),
        claims=CLAIMS,
        has_id=True,
    )
    header, claims, signed, signature = content(assertion_of(settings, NOW))
    assert (header["kid"], claims["aud"], claims["role"], claims["iss"]) == ("k1", "other", "mirror", "me")
    assert claims["jti"] != content(assertion_of(settings, NOW))[1]["jti"]
    numbers = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    key.public_key().verify(encode_dss_signature(*numbers), signed, ec.ECDSA(SHA256()))


def test_a_ready_assertion_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    for text in ("a.b.c", "d.e.f"):
        file.write_text(f"{text}\n")
        assert assertion_of(Assertion(file=str(file)), NOW) == text


def test_what_is_wrong_is_told_without_the_secret(tmp_path: Path) -> None:
    file = stored(rsa.generate_private_key(65537, 2048), tmp_path / "key", "hush")
    for settings, said in (
        (Assertion(key_file=file, passphrase="wrong"), "can't be used"),
        (Assertion(key_file=file), "can't be used"),
        (Assertion(key_file=file, passphrase="hush", algorithm="ES256"), "can't be used with ES256"),
        (Assertion(key_file=str(tmp_path / "none")), "No such file"),
        (Assertion(file="/dev/zero"), "is not a regular file"),
    ):
        with pytest.raises(AuthenticationError, match=said) as error:
            assertion_of(settings, NOW)
        assert "hush" not in str(error.value)
