"""Makes certificates, and the stores of each kind that Java's clients read, for tests of TLS."""

import datetime as dt
import ipaddress
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from sparkmirror.java.find_java import find_java

PASSWORD: Final = "store, password"
KEY_PASSWORD: Final = "key = password"
_DAY: Final = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Identity:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def key_pem(self, password: str | None = None) -> str:
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def pkcs12(self, password: str, *authorities: "Identity") -> bytes:
        return pkcs12.serialize_key_and_certificates(
            b"own",
            self.key,
            self.certificate,
            [each.certificate for each in authorities],
            BestAvailableEncryption(password.encode()),
        )


def authority(name: str) -> Identity:
    """A certificate authority that trusts itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    return Identity(key, builder.sign(key, hashes.SHA256()))


def issued(by: Identity, name: str, *hosts: str, days: int = 2) -> Identity:
    """A certificate for these hosts; with negative `days` it has expired."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = by.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    builder = _builder(name, str(issuer), key, days)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_general_name, hosts))), False)
    return Identity(key, builder.sign(by.key, hashes.SHA256()))


def _builder(
    name: str, issuer: str, key: ec.EllipticCurvePrivateKey, days: int = 2
) -> x509.CertificateBuilder:
    end = dt.datetime.now(dt.UTC) + days * _DAY
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 10 * _DAY)
        .not_valid_after(end)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write(file: Path, content: str | bytes) -> str:
    """The file's path."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


def jks_of(pkcs12_file: str, file: Path, *, key_password: str = PASSWORD, alias: str = "own") -> str:
    """Convert a PKCS12 key store whose password is PASSWORD to JKS."""
    _keytool(
        "-importkeystore", "-noprompt", "-srckeystore", pkcs12_file, "-srcstoretype", "PKCS12",
        "-srcstorepass", PASSWORD, "-srcalias", "own", "-destkeystore", str(file), "-deststoretype", "JKS",
        "-deststorepass", PASSWORD, "-destkeypass", key_password, "-destalias", alias,
    )  # fmt: skip
    return str(file)


def trust_store_of(certificate_file: str, file: Path, kind: str, *properties: str) -> str:
    """A trust store of Java's, JKS or PKCS12, with the password PASSWORD; `properties` are the JRE's."""
    _keytool(
        *(f"-J-D{each}" for each in properties),
        "-importcert", "-noprompt", "-alias", "authority", "-file", certificate_file,
        "-keystore", str(file), "-storetype", kind, "-storepass", PASSWORD,
    )  # fmt: skip
    return str(file)


def _keytool(*arguments: str) -> None:
    keytool = Path(find_java().executable).with_name("keytool")
    subprocess.run([str(keytool), *arguments], check=True, capture_output=True)
