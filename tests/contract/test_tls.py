"""TLS to a real broker: every kind of store, copying from port to port, and errors of refused handshakes."""

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ConfigError, DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.contract.copying import Bench, connected, running
from tests.support import certificates
from tests.support.broker_data import append, numbered
from tests.support.certificates import KEY_PASSWORD, PASSWORD, Identity, issued, write
from tests.support.secured_broker import SecuredBroker
from tests.support.waiting import patience

TOLD_WITHIN_S: Final = 15.0
"""It takes a tenth of a second, and half of one where `keytool` runs; a busy machine may need longer."""

Settings = Mapping[str, str]


@pytest.fixture(scope="module")
def stores(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Settings]:
    """The settings of clients that the port MUTUAL accepts, with each kind of store."""
    folder, client = tmp_path_factory.mktemp("stores"), secured.client
    authority_file = str(secured.folder / "authority.pem")
    both = write(folder / "client.p12", client.pkcs12(PASSWORD, secured.authority))
    jks = certificates.jks_of(both, folder / "client.jks")
    jks_with_key_password = certificates.jks_of(both, folder / "key.jks", key_password=KEY_PASSWORD)
    trust = {
        kind: certificates.trust_store_of(authority_file, folder / f"trust.{kind}", kind)
        for kind in ("JKS", "PKCS12")
    }
    encrypted = client.key_pem(KEY_PASSWORD) + client.certificate_pem()
    return {
        "PEM files": secured.known,
        "PEM in the settings": {  # in one line each, as in a file where a line continues behind a backslash
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": secured.authority.certificate_pem().replace("\n", " "),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": client.key_pem(KEY_PASSWORD).replace("\n", " "),
            "ssl.keystore.certificate.chain": client.certificate_pem().replace("\n", " "),
            "ssl.key.password": KEY_PASSWORD,
        },
        "PEM with an encrypted key": {
            **secured.trusting,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": write(folder / "encrypted.pem", encrypted),
            "ssl.key.password": KEY_PASSWORD,
        },
        "PKCS12": {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": trust["PKCS12"],
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": both,
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        },
        "JKS": {
            "ssl.truststore.location": trust["JKS"],
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": jks,
            "ssl.keystore.password": PASSWORD,
        },
        "JKS with a password for the key": {
            "ssl.truststore.location": trust["JKS"],
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": jks_with_key_password,
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": KEY_PASSWORD,
        },
        "PKCS12 under the name JKS, trust store without password": {
            "ssl.truststore.location": trust["JKS"],
            "ssl.keystore.location": both,
            "ssl.keystore.password": PASSWORD,
        },
    }


KINDS: Final = (
    "PEM files",
    "PEM in the settings",
    "PEM with an encrypted key",
    "PKCS12",
    "JKS",
    "JKS with a password for the key",
    "PKCS12 under the name JKS, trust store without password",
)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_store_is_read(
    secured: SecuredBroker, stores: Mapping[str, Settings], kind: str
) -> None:
    settings = secured.settings("MUTUAL", {"security.protocol": "ssl", **stores[kind]})
    assert len(read_metadata(settings, []).brokers) == 1


def test_applications_clients_reach_it_by_the_same_settings(
    secured: SecuredBroker, stores: Mapping[str, Settings]
) -> None:
    servers = f"{HOST}:{secured.ports['MUTUAL']}"
    settings = {"bootstrap.servers": servers, "security.protocol": "SSL", **stores["JKS"]}
    with MirrorClient(settings) as client:
        assert client.replication_hops("nobody") == -1


@pytest.mark.parametrize(("option", "listener"), [("-mtls", "MUTUAL"), ("-ssl", "TLS")])
def test_group_offset_sync_reaches_it_by_tls(
    option: str,
    listener: str,
    secured: SecuredBroker,
    stores: Mapping[str, Settings],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """There are no checkpoints, which is found out there."""
    settings = {
        "BOOTSTRAP_SERVERS_CONFIG": f"{HOST}:{secured.ports[listener]}",
        "SSL_TRUSTSTORE_LOCATION_CONFIG": stores["PKCS12"]["ssl.truststore.location"],
        "ssl.truststore.password": PASSWORD,
        "SSL_KEYSTORE_LOCATION_CONFIG": stores["PKCS12"]["ssl.keystore.location"],
        "SSL_KEYSTORE_PASSWORD_CONFIG": PASSWORD,
        "SSL_KEY_PASSWORD_CONFIG": PASSWORD,
    }
    file = tmp_path / "consumer.properties_sync_dest"
    file.write_text(javaproperties.dumps(settings), encoding="ascii")
    command = ["group-offset-sync", "-cgi", "billing", "-src", "near", "-pfp", str(file), option, "--once"]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "near.checkpoints.internal: UNKNOWN_TOPIC_OR_PARTITION" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "choice",
    [
        {"ssl.enabled.protocols": "TLSv1.2"},
        {"ssl.enabled.protocols": "TLSv1.3"},
        {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
    ],
    ids=lambda choice: next(iter(choice.values())),
)
def test_versions_and_ciphers_are_chosen(secured: SecuredBroker, choice: Settings) -> None:
    assert read_metadata(secured.settings("MUTUAL", {**secured.known, **choice}), []).brokers


def test_without_the_check_any_host_name_is_accepted(secured: SecuredBroker) -> None:
    unchecked = {**secured.trusting, "ssl.endpoint.identification.algorithm": ""}
    assert read_metadata(secured.settings("TLS", unchecked, host="localhost"), []).brokers


def test_batches_are_copied_from_tls_to_mutual_tls(secured: SecuredBroker, secured_bench: Bench) -> None:
    """Small ones, and one that is larger than a socket's buffers."""
    bench, topic = secured_bench, "tls"
    bench.create(topic)
    append(secured.cluster, topic, [(b"large", bytes(900_000))])
    bench.source_has(topic, 500)
    expected = bench.written(topic)
    plain = bench.plan(TopicPartition(topic, 0))
    source = replace(secured.settings("TLS", secured.trusting), client_id="source")
    target = secured.settings("MUTUAL", secured.known)
    plan = connected(plain, source, target)
    with running(plan):
        bench.await_copied(topic, expected)
        append(secured.cluster, topic, numbered(20, 500))
        bench.await_copied(topic, bench.written(topic))


def test_a_store_that_changes_on_disk_is_read_again(secured: SecuredBroker, tmp_path: Path) -> None:
    foreign = certificates.authority("foreign")
    file = Path(write(tmp_path / "trust.pem", foreign.certificate_pem()))
    settings = secured.settings("TLS", {**secured.trusting, "ssl.truststore.location": str(file)})
    with pytest.raises(DisconnectedError, match="does not trust"):
        read_metadata(settings, [])
    write(file, foreign.certificate_pem() + secured.authority.certificate_pem())
    assert read_metadata(settings, []).brokers
    write(file, "-----BEGIN half a file")
    assert read_metadata(settings, []).brokers


def test_a_store_s_new_password_on_disk_is_used(
    secured: SecuredBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secrets, store = tmp_path / "secrets", tmp_path / "client.p12"
    keys = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": f"${{file:{secrets}:password}}",
    }
    for password in ("first", "second"):
        write(store, secured.client.pkcs12(password, secured.authority))
        secrets.write_text(f"password = {password}\n")
        if password == "first":
            settings = secured.settings("MUTUAL", {**secured.trusting, **keys})
        assert read_metadata(settings, []).brokers
    assert "can't be used" not in caplog.text, "the former key is used"


# what a user is told


def told(settings: ConnectionSettings) -> str:
    """The error, which is one line that names the cluster's alias or the setting, and comes soon."""
    started = time.monotonic()
    with pytest.raises((ConfigError, DisconnectedError)) as error:
        read_metadata(settings, [])
    assert time.monotonic() - started < TOLD_WITHIN_S * patience()
    text = str(error.value)
    assert "\n" not in text
    if isinstance(error.value, DisconnectedError):
        assert "near: " in text or f":{settings.bootstrap_servers[0][1]} " in text
    assert PASSWORD not in text
    return text


def test_an_untrusted_authority_is_told(secured: SecuredBroker, tmp_path: Path) -> None:
    foreign = write(tmp_path / "foreign.pem", certificates.authority("foreign").certificate_pem())
    text = told(secured.settings("TLS", {**secured.trusting, "ssl.truststore.location": foreign}))
    assert f"near: {HOST}:{secured.ports['TLS']} has a certificate that {foreign} does not trust" in text
    assert "check ssl.truststore.location" in text


@contextmanager
def identified_by(identity: Identity, folder: Path) -> Iterator[int]:
    """A port that only shakes hands, with this certificate."""
    keys = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    keys.load_cert_chain(write(folder / "server.pem", identity.key_pem() + identity.certificate_pem()))

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            keys.wrap_socket(listening.accept()[0], server_side=True).close()

    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=accept, args=(listening,))
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (
            -1,
            r"has a certificate that has expired, as it is \d{4}-\d\d-\d\d \d\d:\d\d UTC here: renew it",
        ),
        (20, r"has a certificate that is not valid yet, as it is .* UTC here: check the clocks"),
    ],
)
def test_a_certificate_of_another_time_is_told_with_the_time(
    secured: SecuredBroker, tmp_path: Path, days: int, said: str
) -> None:
    """A clock that is wrong makes a good certificate look so."""
    settings = secured.settings("TLS", secured.trusting)
    with identified_by(issued(secured.authority, "broker", HOST, days=days), tmp_path) as port:
        text = told(replace(settings, bootstrap_servers=((HOST, port),)))
    assert re.search(f"near: {HOST}:{port} {said}", text), text


def test_the_system_s_authorities_are_named_where_no_store_is_given(secured: SecuredBroker) -> None:
    text = told(secured.settings("TLS", {"security.protocol": "SSL"}))
    assert "that the system (ssl.truststore.location is not set) does not trust" in text


def test_another_host_name_is_told_with_those_of_the_certificate(secured: SecuredBroker) -> None:
    text = told(secured.settings("TLS", secured.trusting, host="localhost"))
    assert f"has a certificate for {HOST}, not for localhost" in text
    assert "ssl.endpoint.identification.algorithm" in text


def test_a_missing_client_certificate_is_told(secured: SecuredBroker) -> None:
    text = told(secured.settings("MUTUAL", secured.trusting))
    assert "wants a client certificate: set ssl.keystore.location" in text


@pytest.mark.parametrize("days", [2, -1], ids=["foreign", "expired"])
def test_a_refused_client_certificate_is_told(secured: SecuredBroker, tmp_path: Path, days: int) -> None:
    by = certificates.authority("foreign") if days > 0 else secured.authority
    client = certificates.issued(by, "client", days=days)
    keys = write(tmp_path / "client.pem", client.key_pem() + client.certificate_pem())
    text = told(secured.settings("MUTUAL", {**secured.known, "ssl.keystore.location": keys}))
    assert "refused the client certificate of ssl.keystore.location: " in text


def test_tls_at_a_plaintext_port_is_told(secured: SecuredBroker) -> None:
    text = told(secured.settings("PLAINTEXT", secured.trusting))
    assert "set security.protocol=PLAINTEXT instead of SSL" in text


def test_plaintext_at_a_tls_port_is_told(secured: SecuredBroker) -> None:
    text = told(secured.settings("TLS", {}))
    assert f"{HOST}:{secured.ports['TLS']} speaks TLS: set security.protocol=SSL" in text


def test_stores_that_can_not_be_read_are_told(
    secured: SecuredBroker, stores: Mapping[str, Settings], tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.pem")
    text = told(secured.settings("TLS", {**secured.trusting, "ssl.truststore.location": missing}))
    assert text == f"Invalid value {missing} for configuration ssl.truststore.location: There is no such file"
    for kind in ("JKS", "PKCS12"):
        wrong = {**stores[kind], "security.protocol": "SSL", "ssl.keystore.password": "wrong password"}
        text = told(secured.settings("MUTUAL", wrong))
        assert "ssl.keystore.location" in text
        assert "password" in text
        assert "wrong password" not in text
    typed = told(secured.settings("TLS", {**secured.trusting, "ssl.truststore.type": "JKS"}))
    assert "for configuration ssl.truststore.type: " in typed
    assert "is a PEM file: set it to PEM" in typed
