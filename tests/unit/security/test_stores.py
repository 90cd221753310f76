"""Stores that can't be opened: the error names the setting, the cause and the remedy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import PBES, serialize_key_and_certificates

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import Store, TlsSettings
from sparkmirror.security.stores import read_keys, read_trusted
from sparkmirror.security.tls_context import client_context
from tests.support.certificates import KEY_PASSWORD, Identity, authority, jks_of, trust_store_of, write
from tests.support.certificates import PASSWORD as STORE_PASSWORD

PASSWORD: Final = "a password"
ONLY_FIPS: Final = """\
openssl_conf = all
[all]
providers = providers
alg_section = algorithms
[providers]
default = active
base = active
[active]
activate = 1
[algorithms]
default_properties = fips=yes
"""
"""OpenSSL without what no provider of FIPS offers; it has none here, so that is everything."""
READ: Final = """\
import sys
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import Store
from sparkmirror.security.stores import read_keys
try:
    read_keys(Store("ssl.keystore", "PKCS12", sys.argv[1], password="a password"), None)
except ConfigError as error:
    print(error)
"""

CONNECT: Final = """\
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.tls_context import client_context
try:
    client_context(TlsSettings())
except ConfigError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def own() -> Identity:
    return authority("own")


def old(own: Identity) -> bytes:
    """Return a store as Java wrote it before version 16, but for RC2."""
    kind = PrivateFormat.PKCS12.encryption_builder()
    encryption = kind.kdf_rounds(1000).key_cert_algorithm(PBES.PBESv1SHA1And3KeyTripleDESCBC)
    return serialize_key_and_certificates(
        b"own", own.key, own.certificate, None, encryption.build(PASSWORD.encode())
    )


def test_a_cipher_that_openssl_refuses_is_named(own: Identity, tmp_path: Path) -> None:
    store = write(tmp_path / "old.p12", old(own))
    assert "BEGIN" in read_keys(Store("ssl.keystore", "PKCS12", store, password=PASSWORD), None).pem
    environment = {**os.environ, "OPENSSL_CONF": write(tmp_path / "openssl.cnf", ONLY_FIPS)}
    ran = subprocess.run(
        [sys.executable, "-c", READ, store], env=environment, capture_output=True, text=True, check=True
    )
    assert f"Invalid value {store} for configuration ssl.keystore.location: It can't be opened" in ran.stdout
    assert "It is encrypted with 3DES, which OpenSSL refuses in FIPS mode" in ran.stdout
    assert PASSWORD not in ran.stdout


def encrypted(own: Identity, folder: Path, *options: str) -> str:
    """The key and the certificate as OpenSSL's command encrypts the key."""
    command = [
        "openssl",
        *options,
        "-passout",
        f"pass:{PASSWORD}",
        "-in",
        write(folder / "key", own.key_pem()),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout + own.certificate_pem()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="OpenSSL's command encrypts the keys")
@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (("pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES"), "PBES1"),
        (("ec", "-des3"), "MD5 and DES-EDE3-CBC"),
        (("pkcs8", "-topk8", "-v2", "aes-256-cbc"), None),
    ],
)
def test_a_key_whose_encryption_is_refused_in_fips_mode_is_told(
    options: tuple[str, ...], kind: str | None, own: Identity, tmp_path: Path
) -> None:
    """Here that it can't be used for its password: no such mode is on."""
    pem = encrypted(own, tmp_path, *options)
    store = Store("ssl.keystore", "PEM", text=pem)
    client_context(TlsSettings(key_store=store, key_password=PASSWORD))
    with pytest.raises(ConfigError) as error:
        client_context(TlsSettings(key_store=store, key_password="wrong"))
    assert ("in FIPS mode" in str(error.value)) == (kind is not None)
    if kind is not None:
        assert f"It is encrypted with {kind}, which" in str(error.value)


def test_an_openssl_without_any_cipher_is_told(tmp_path: Path) -> None:
    environment = {**os.environ, "OPENSSL_CONF": write(tmp_path / "openssl.cnf", ONLY_FIPS)}
    ran = subprocess.run(
        [sys.executable, "-c", CONNECT], env=environment, capture_output=True, text=True, check=True
    )
    assert "security.protocol: This machine's OpenSSL has no cipher suite. In FIPS mode: " in ran.stdout


@pytest.mark.parametrize("mac", ["HmacPBESHA256", "NONE"])
def test_certificates_that_are_not_encrypted_need_no_password(
    mac: str, own: Identity, tmp_path: Path
) -> None:
    """Java does not check the integrity then, either."""
    certificate = write(tmp_path / "own.pem", own.certificate_pem())
    plain = ("keystore.pkcs12.certProtectionAlgorithm=NONE", f"keystore.pkcs12.macAlgorithm={mac}")
    store = trust_store_of(certificate, tmp_path / "trust.p12", "PKCS12", *plain)
    assert read_trusted(Store("ssl.truststore", "PKCS12", store)) == own.certificate_pem()


def test_certificates_that_are_encrypted_need_a_password(own: Identity, tmp_path: Path) -> None:
    certificate = write(tmp_path / "own.pem", own.certificate_pem())
    store = trust_store_of(certificate, tmp_path / "trust.p12", "PKCS12")
    with pytest.raises(
        ConfigError, match=r"ssl\.truststore\.location: It can't be opened.* needs its password$"
    ):
        read_trusted(Store("ssl.truststore", "PKCS12", store))


def test_a_key_with_a_password_of_its_own_may_have_any_alias(own: Identity, tmp_path: Path) -> None:
    pkcs12 = write(tmp_path / "own.p12", own.pkcs12(STORE_PASSWORD))
    jks = jks_of(pkcs12, tmp_path / "own.jks", key_password=KEY_PASSWORD, alias="a key, for us")
    found = read_keys(Store("ssl.keystore", "JKS", jks, password=STORE_PASSWORD), KEY_PASSWORD)
    assert "BEGIN PRIVATE KEY" in found.pem


def test_java_is_asked_for_where_it_is_needed(
    own: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jks = jks_of(write(tmp_path / "own.p12", own.pkcs12(STORE_PASSWORD)), tmp_path / "own.jks")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location: .*sparkmirror needs Java"):
        read_keys(Store("ssl.keystore", "JKS", jks, password=STORE_PASSWORD), None)


def test_a_wrong_password_of_a_new_store_is_nothing_but_that(own: Identity, tmp_path: Path) -> None:
    store = Store(
        "ssl.truststore", "PKCS12", write(tmp_path / "new.p12", own.pkcs12(PASSWORD)), None, "wrong"
    )
    with pytest.raises(ConfigError, match=r"needs the right ssl\.truststore\.password$"):
        read_trusted(store)
