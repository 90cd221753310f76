"""TLS to a real broker: every kind of store, copying from port to port, and what a user is told otherwise."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ConfigError, DisconnectedError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.contract.copying import Bench, connected, running
from tests.support import certificates
from tests.support.broker_data import append, numbered
from tests.support.certificates import KEY_PASSWORD, PASSWORD, write
from tests.support.secured_broker import SecuredBroker, secured_broker

TOLD_WITHIN_S: Final = 15.0
"""It takes a tenth of a second, and half of one where `keytool` runs; a busy machine may need longer."""

Settings = Mapping[str, str]

pytestmark = pytest.mark.xdist_group("secured")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured") / "broker") as made:
        yield made


@pytest.fixture(scope="module")
def stores(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Settings]:
    """The settings of clients that the port MUTUAL accepts, with each kind of store."""
    folder, client = tmp_path_factory.mktemp("stores"), broker.client
    authority_file = str(broker.folder / "authority.pem")
    both = write(folder / "client.p12", client.pkcs12(PASSWORD, broker.authority))
    jks = certificates.jks_of(both, folder / "client.jks")
    jks_with_key_password = certificates.jks_of(both, folder / "key.jks", key_password=KEY_PASSWORD)
    trust = {
        kind: certificates.trust_store_of(authority_file, folder / f"trust.{kind}", kind)
        for kind in ("JKS", "PKCS12")
    }
    encrypted = client.key_pem(KEY_PASSWORD) + client.certificate_pem()
    return {
        "PEM files": broker.known,
        "PEM in the settings": {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": broker.authority.certificate_pem(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": client.key_pem(KEY_PASSWORD),
            "ssl.keystore.certificate.chain": client.certificate_pem(),
            "ssl.key.password": KEY_PASSWORD,
        },
        "PEM with an encrypted key": {
            **broker.trusting,
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
def test_each_kind_of_store_is_read(broker: SecuredBroker, stores: Mapping[str, Settings], kind: str) -> None:
    settings = broker.settings("MUTUAL", {"security.protocol": "ssl", **stores[kind]})
    assert len(read_metadata(settings, []).brokers) == 1


@pytest.mark.parametrize(
    "choice",
    [
        {"ssl.enabled.protocols": "TLSv1.2"},
        {"ssl.enabled.protocols": "TLSv1.3"},
        {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
    ],
    ids=lambda choice: next(iter(choice.values())),
)
def test_versions_and_ciphers_are_chosen(broker: SecuredBroker, choice: Settings) -> None:
    assert read_metadata(broker.settings("MUTUAL", {**broker.known, **choice}), []).brokers


def test_without_the_check_any_host_name_is_accepted(broker: SecuredBroker) -> None:
    unchecked = {**broker.trusting, "ssl.endpoint.identification.algorithm": ""}
    assert read_metadata(broker.settings("TLS", unchecked, host="localhost"), []).brokers


def test_batches_are_copied_from_tls_to_mutual_tls(broker: SecuredBroker) -> None:
    """Small ones, and one that is larger than a socket's buffers."""
    bench = Bench(broker.cluster, broker.cluster)
    bench.create_state_topics()
    topic = "tls"
    bench.create(topic)
    append(broker.cluster, topic, [(b"large", bytes(900_000))])
    bench.source_has(topic, 500)
    expected = bench.written(topic)
    plain = bench.plan(TopicPartition(topic, 0))
    source = replace(broker.settings("TLS", broker.trusting), client_id="source")
    target = broker.settings("MUTUAL", broker.known)
    plan = connected(plain, source, target)
    with running(plan):
        bench.await_copied(topic, expected)
        append(broker.cluster, topic, numbered(20, 500))
        bench.await_copied(topic, bench.written(topic))


def test_a_store_that_changes_on_disk_is_read_again(broker: SecuredBroker, tmp_path: Path) -> None:
    foreign = certificates.authority("foreign")
    file = Path(write(tmp_path / "trust.pem", foreign.certificate_pem()))
    settings = broker.settings("TLS", {**broker.trusting, "ssl.truststore.location": str(file)})
    with pytest.raises(DisconnectedError, match="does not trust"):
        read_metadata(settings, [])
    write(file, foreign.certificate_pem() + broker.authority.certificate_pem())
    assert read_metadata(settings, []).brokers
    write(file, "-----BEGIN half a file")
    assert read_metadata(settings, []).brokers


def test_a_store_s_new_password_on_disk_is_used(
    broker: SecuredBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secrets, store = tmp_path / "secrets", tmp_path / "client.p12"
    keys = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": f"${{file:{secrets}:password}}",
    }
    for password in ("first", "second"):
        write(store, broker.client.pkcs12(password, broker.authority))
        secrets.write_text(f"password = {password}\n")
        if password == "first":
            settings = broker.settings("MUTUAL", {**broker.trusting, **keys})
        assert read_metadata(settings, []).brokers
    assert "can't be used" not in caplog.text, "the former key is used"


# what a user is told


def told(settings: ConnectionSettings) -> str:
    """The error, which is one line that names the cluster's alias or the setting, and comes soon."""
    started = time.monotonic()
    with pytest.raises((ConfigError, DisconnectedError)) as error:
        read_metadata(settings, [])
    assert time.monotonic() - started < TOLD_WITHIN_S
    text = str(error.value)
    assert "\n" not in text
    if isinstance(error.value, DisconnectedError):
        assert "near: " in text or f":{settings.bootstrap_servers[0][1]} " in text
    assert PASSWORD not in text
    return text


def test_an_untrusted_authority_is_told(broker: SecuredBroker, tmp_path: Path) -> None:
    foreign = write(tmp_path / "foreign.pem", certificates.authority("foreign").certificate_pem())
    text = told(broker.settings("TLS", {**broker.trusting, "ssl.truststore.location": foreign}))
    assert f"near: {HOST}:{broker.ports['TLS']} has a certificate that {foreign} does not trust" in text
    assert "check ssl.truststore.location" in text


def test_the_system_s_authorities_are_named_where_no_store_is_given(broker: SecuredBroker) -> None:
    text = told(broker.settings("TLS", {"security.protocol": "SSL"}))
    assert "that the system (ssl.truststore.location is not set) does not trust" in text


def test_another_host_name_is_told_with_those_of_the_certificate(broker: SecuredBroker) -> None:
    text = told(broker.settings("TLS", broker.trusting, host="localhost"))
    assert f"has a certificate for {HOST}, not for localhost" in text
    assert "ssl.endpoint.identification.algorithm" in text


def test_a_missing_client_certificate_is_told(broker: SecuredBroker) -> None:
    text = told(broker.settings("MUTUAL", broker.trusting))
    assert "wants a client certificate: set ssl.keystore.location" in text


@pytest.mark.parametrize("days", [2, -1], ids=["foreign", "expired"])
def test_a_refused_client_certificate_is_told(broker: SecuredBroker, tmp_path: Path, days: int) -> None:
    by = certificates.authority("foreign") if days > 0 else broker.authority
    client = certificates.issued(by, "client", days=days)
    keys = write(tmp_path / "client.pem", client.key_pem() + client.certificate_pem())
    text = told(broker.settings("MUTUAL", {**broker.known, "ssl.keystore.location": keys}))
    assert "refused the client certificate of ssl.keystore.location: " in text


def test_tls_at_a_plaintext_port_is_told(broker: SecuredBroker) -> None:
    text = told(broker.settings("PLAINTEXT", broker.trusting))
    assert "set security.protocol=PLAINTEXT instead of SSL" in text


def test_plaintext_at_a_tls_port_is_told(broker: SecuredBroker) -> None:
    text = told(broker.settings("TLS", {}))
    assert f"{HOST}:{broker.ports['TLS']} speaks TLS: set security.protocol=SSL" in text


def test_stores_that_can_not_be_read_are_told(
    broker: SecuredBroker, stores: Mapping[str, Settings], tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.pem")
    text = told(broker.settings("TLS", {**broker.trusting, "ssl.truststore.location": missing}))
    assert text == f"Invalid value {missing} for configuration ssl.truststore.location: There is no such file"
    for kind in ("JKS", "PKCS12"):
        wrong = {**stores[kind], "security.protocol": "SSL", "ssl.keystore.password": "wrong password"}
        text = told(broker.settings("MUTUAL", wrong))
        assert "ssl.keystore.location" in text
        assert "password" in text
        assert "wrong password" not in text
    typed = told(broker.settings("TLS", {**broker.trusting, "ssl.truststore.type": "JKS"}))
    assert "for configuration ssl.truststore.type: " in typed
    assert "is a PEM file: set it to PEM" in typed
