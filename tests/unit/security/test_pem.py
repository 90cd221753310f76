"""Keys and certificates in PEM, in each form that Java's clients take."""

import time
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import Store, TlsSettings
from sparkmirror.security.stores import in_lines
from sparkmirror.security.tls_context import client_context
from tests.support.certificates import authority, write

OWN: Final = authority("own")
FORMS: Final[dict[str, Callable[[str], str]]] = {
    "lines": lambda text: text,
    "one line": lambda text: text.replace("\n", " "),
    "indented": lambda text: text.replace("\n", "\n\t  "),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "behind a long text": lambda text: "Subject: CN = Jürgen\n" * 500 + text,
}


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("password", [None, "a password"])
def test_each_form_is_read(
    form: Callable[[str], str], is_file: bool, password: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys, trusted = form(OWN.key_pem(password) + OWN.certificate_pem()), form(OWN.certificate_pem())
    folder = tmp_path_factory.mktemp("stores")

    def store(option: str, text: str) -> Store:
        file = write(folder / option, text)
        return Store(option, "PEM", file) if is_file else Store(option, "PEM", text=text)

    settings = TlsSettings(store("ssl.keystore", keys), store("ssl.truststore", trusted), password)
    assert len(client_context(settings).get_ca_certs()) == 1


def test_headers_keep_their_lines() -> None:
    """Headers of keys that OpenSSL encrypted before PKCS8."""
    headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: A,B\n"
    key = f"-----BEGIN EC PRIVATE KEY-----\n{headers}\nYWJj\n-----END EC PRIVATE KEY-----\n"
    assert in_lines(f"before {key} behind") == key


@pytest.mark.parametrize(
    "text", ["", "none", "-----BEGIN CERTIFICATE-----\nYWJj\n", "-----BEGIN X-----\nYWJj\n-----END X-----"]
)
def test_without_a_certificate_the_store_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="It holds no usable certificate"):
        client_context(TlsSettings(trust_store=Store("ssl.truststore", "PEM", text=text)))


@given(st.lists(st.sampled_from(["-----BEGIN ", "-----END ", "A-----", "-----", "abc", "\n", ":", "ü"])))
def test_whatever_is_found_is_found_again(parts: list[str]) -> None:
    found = in_lines("".join(parts))
    assert found.isascii()
    assert in_lines(found) == found


@pytest.mark.parametrize("part", ["-----BEGIN A-----", "-----END A-----", "-----BEGIN ", "-----"])
def test_a_text_of_marks_takes_linear_time(part: str) -> None:
    """A megabyte; in the square of it this would be minutes."""
    began = time.process_time()
    in_lines(part * (2**20 // len(part)))
    assert time.process_time() - began < 5.0
