"""Stores of the REST API's listeners count as they are on disk: new connections need no restart."""

import hashlib
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
import urllib3
from cryptography.hazmat.primitives.serialization import Encoding

from sparkmirror.clusters.ports import HOST
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.connect.rest.rest_settings import RestSettings, rest_settings
from tests.support.certificates import PASSWORD, Identity, authority, issued, jks_of, write
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_serving import server, serving
from tests.support.waiting import await_value

RENEWED_S: Final = 60.0
FILE_PROVIDER: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"


def fingerprint(identity: Identity) -> str:
    return hashlib.sha256(identity.certificate.public_bytes(Encoding.DER)).hexdigest()


def shown_by(url: str) -> str:
    """The certificate with which a new connection is answered."""
    port = int(url.rpartition(":")[2])
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((HOST, port)) as plain, anybody.wrap_socket(plain) as connected:
        return hashlib.sha256(connected.getpeercert(binary_form=True) or b"").hexdigest()


def await_shown(url: str, identity: Identity) -> None:
    expected = fingerprint(identity)
    await_value(lambda: shown_by(url) == expected, RENEWED_S, lambda: f"{shown_by(url)}, not {expected}")


def pem(folder: Path, identity: Identity, password: str) -> str:
    return write(folder / "next", identity.key_pem(password) + identity.certificate_pem())


def pkcs12(folder: Path, identity: Identity, password: str) -> str:
    return write(folder / "next", identity.pkcs12(password))


def jks(folder: Path, identity: Identity, password: str) -> str:
    assert password == PASSWORD
    (folder / "next").unlink(missing_ok=True)
    return jks_of(write(folder / "from.p12", identity.pkcs12(password)), folder / "next")


def settings(folder: Path, kind: str, more: Mapping[str, str]) -> RestSettings:
    worker = Properties(
        {
            "listeners": f"https://{HOST}:0",
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(folder / "store"),
            **more,
        }
    )
    return rest_settings(resolved(worker, configured_providers(worker, {})))


@pytest.mark.parametrize(("kind", "make"), [("PEM", pem), ("PKCS12", pkcs12), ("JKS", jks)])
def test_a_new_key_store_counts_for_new_connections(
    tmp_path: Path, kind: str, make: Callable[[Path, Identity, str], str]
) -> None:
    own = authority("ca")
    first, second = issued(own, "first", HOST), issued(own, "second", HOST)
    store = tmp_path / "store"
    Path(make(tmp_path, first, PASSWORD)).rename(store)
    password = "ssl.key.password" if kind == "PEM" else "ssl.keystore.password"
    with serving(MemoryHerder(), settings(tmp_path, kind, {password: PASSWORD})) as url:
        trust = write(tmp_path / "ca.pem", own.certificate_pem())
        with urllib3.HTTPSConnectionPool(HOST, int(url.rpartition(":")[2]), ca_certs=trust) as before:
            assert before.request("GET", "/").status == 200
            assert shown_by(url) == fingerprint(first)
            Path(make(tmp_path, second, PASSWORD)).rename(store)
            await_shown(url, second)
            assert before.request("GET", "/").status == 200
            assert before.num_connections == 1


def test_a_store_that_can_not_be_read_is_said_once_and_the_one_before_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    own = authority("ca")
    first, second = issued(own, "first", HOST), issued(own, "second", HOST)
    store = tmp_path / "store"
    Path(pem(tmp_path, first, PASSWORD)).rename(store)
    with serving(MemoryHerder(), settings(tmp_path, "PEM", {"ssl.key.password": PASSWORD})) as url:
        store.write_text("-----BEGIN nothing")
        await_value(lambda: "can't be used, the one before is kept" in caplog.text, RENEWED_S, str)
        assert shown_by(url) == fingerprint(first)
        Path(pem(tmp_path, second, PASSWORD)).rename(store)
        await_shown(url, second)
    assert caplog.text.count("the one before is kept") == 1
    assert PASSWORD not in caplog.text


def test_a_password_that_is_kept_elsewhere_changes_with_its_store(tmp_path: Path) -> None:
    own = authority("ca")
    first, second = issued(own, "first", HOST), issued(own, "second", HOST)
    secrets = tmp_path / "secrets"
    secrets.write_text("store=one\n")
    Path(pkcs12(tmp_path, first, "one")).rename(tmp_path / "store")
    kept = {
        "config.providers": "file",
        "config.providers.file.class": FILE_PROVIDER,
        "ssl.keystore.password": f"${{file:{secrets}:store}}",
    }
    with serving(MemoryHerder(), settings(tmp_path, "PKCS12", kept)) as url:
        assert shown_by(url) == fingerprint(first)
        Path(pkcs12(tmp_path, second, "another")).rename(tmp_path / "store")
        secrets.write_text("store=another\n")
        await_shown(url, second)


def test_clients_and_other_workers_are_trusted_by_a_new_trust_store(tmp_path: Path) -> None:
    """The leader gets another authority's certificate: the follower trusts it from then on."""
    old, new = authority("old"), authority("new")
    for name, by in (("old", old), ("new", new)):
        each = issued(by, f"{name} worker", HOST)
        write(tmp_path / f"{name}.pem", each.key_pem() + each.certificate_pem())
    (tmp_path / "store").write_bytes((tmp_path / "old.pem").read_bytes())
    trusted = tmp_path / "ca.pem"
    trusted.write_text(old.certificate_pem())
    trust = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "ssl.client.auth": "required",
    }

    def accepts(url: str, who: str) -> bool:
        certificate = str(tmp_path / f"{who}.pem")
        both = write(tmp_path / "both.pem", old.certificate_pem() + new.certificate_pem())
        with urllib3.PoolManager(ca_certs=both, cert_file=certificate, retries=False) as pools:
            try:
                return pools.request("PUT", f"{url}/connectors/x/pause").status == 404
            except urllib3.exceptions.HTTPError:
                return False

    of_both = settings(tmp_path, "PEM", trust)
    with server(MemoryHerder(), of_both) as leader:
        follower = MemoryHerder(leads=False, leader_url=leader.advertised_url)
        with serving(follower, of_both) as url:
            assert accepts(url, "old")
            assert not accepts(url, "new")
            trusted.write_text(new.certificate_pem())
            (tmp_path / "store").write_bytes((tmp_path / "new.pem").read_bytes())
            await_value(lambda: accepts(url, "new"), RENEWED_S, lambda: "the new authority is not trusted")
            assert not accepts(url, "old")
