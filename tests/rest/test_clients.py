"""The REST API with a third-party client and with TLS."""

import json
import shutil
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import urllib3
from kafka_connect import KafkaConnect  # type: ignore[import-untyped] # it says nothing about types

from sparkmirror.clusters.ports import HOST
from sparkmirror.config.properties import Properties
from sparkmirror.connect.rest.rest_settings import RestSettings, rest_settings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.domain.errors import ConfigError
from sparkmirror.security.tls_context import client_context
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_serving import server, serving
from tests.support.waiting import await_value

CONFIG = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "tasks.max": "1",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
SECRET = "not-told"
ANSWERED_S = 10.0


def test_a_third_party_client_works() -> None:
    """All functions of kafka-connect-py."""
    with serving(MemoryHerder()) as url:
        client = KafkaConnect(url)
        assert set(client.get_cluster_info()) == {"version", "commit", "kafka_cluster_id"}
        assert client.create_connector({"name": "one", "config": CONFIG})["name"] == "one"
        assert client.update_connector("two", CONFIG)["config"] == {**CONFIG, "name": "two"}
        assert client.list_connectors(pattern="o.*") == ["one"]
        client.pause_connector("two")
        assert list(client.list_connectors(expand="status", state="PAUSED")) == ["two"]
        client.resume_all_connectors()
        assert client.get_connector("two")["tasks"] == [{"connector": "two", "task": 0}]
        assert client.get_connector_config("one")["tasks.max"] == "1"
        assert client.get_connector_status("two")["connector"]["state"] == "RUNNING"
        assert client.list_connector_tasks("one")[0]["id"] == {"connector": "one", "task": 0}
        assert client.get_connector_task_status("one", 0)["state"] == "RUNNING"
        client.restart_connector_task("one", 0)
        client.restart_connector("one")
        client.restart_all_connectors(include_tasks=True)
        assert client.list_connector_topics("one") == {"one": {"topics": ["heartbeats"]}}
        client.reset_connector_topics("one")
        assert {plugin["type"] for plugin in client.list_connector_plugins()} == {"source"}
        assert client.validate_connector_config("MirrorHeartbeat", CONFIG)["error_count"] == 1
        client.stop_connector("one")
        client.delete_all_connectors()
        assert client.list_connectors() == []


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with an encrypted key and its certificate for this machine."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl is not None
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", f"subjectAltName=IP:{HOST},DNS:localhost", "-passout", f"pass:{SECRET}"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    (folder / "both.pem").write_text(key.read_text() + certificate.read_text())
    return folder


def https(authority: Path, **more: str) -> RestSettings:
    defaults = {
        "listeners": f"https://{HOST}:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority / "both.pem"),
        "ssl.key.password": SECRET,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority / "certificate.pem"),
    }
    return rest_settings(
        Properties({**defaults, **{key.replace("_", "."): value for key, value in more.items()}})
    )


def asked(url: str, authority: Path, *, with_certificate: bool = False) -> Any:
    context = ssl.create_default_context(cafile=authority / "certificate.pem")
    if with_certificate:
        context.load_cert_chain(authority / "both.pem", password=SECRET)
    with urllib3.PoolManager(ssl_context=context, retries=False) as pools:
        return json.loads(pools.request("GET", f"{url}connectors").data)


def await_no_client(started: RestServer) -> None:
    """Wait until the server has closed connections whose TLS handshake failed."""
    port = int(started.advertised_url.rstrip("/").rpartition(":")[2])

    def clients() -> list[Any]:
        open_here = psutil.Process().net_connections()
        return [one for one in open_here if one.laddr.port == port and one.raddr]

    await_value(lambda: not clients(), ANSWERED_S, lambda: str(clients()))


def test_clients_and_workers_connect_over_tls(authority: Path) -> None:
    with server(MemoryHerder(), https(authority)) as leader:
        assert leader.advertised_url.startswith("https://")
        assert asked(leader.advertised_url, authority) == []
        follower = MemoryHerder(leads=False, leader_url=leader.advertised_url)
        with server(follower, https(authority)) as started:
            trust = str(authority / "certificate.pem")
            with urllib3.PoolManager(ca_certs=trust, retries=False) as pools:
                found = pools.request("PUT", f"{started.advertised_url}connectors/x/config", json=CONFIG)
            assert found.status == 201
        assert asked(leader.advertised_url, authority) == ["x"]


def test_workers_trust_what_the_trust_store_holds_and_nothing_else(authority: Path) -> None:
    tls = https(authority).tls
    assert tls is not None
    (trusted,) = client_context(tls.stores).get_ca_certs()
    assert trusted["subject"] == ((("commonName", "localhost"),),)
    system = ssl.create_default_context().cert_store_stats()
    assert client_context(replace(tls.stores, trust_store=None)).cert_store_stats() == system


def test_client_certificates_can_be_required(authority: Path) -> None:
    with server(MemoryHerder(), https(authority, ssl_client_auth="required")) as started:
        assert asked(started.advertised_url, authority, with_certificate=True) == []
        with pytest.raises(urllib3.exceptions.HTTPError):
            asked(started.advertised_url, authority)
        await_no_client(started)


def test_old_protocols_are_refused(authority: Path) -> None:
    with server(MemoryHerder(), https(authority, ssl_enabled_protocols="TLSv1.3")) as started:
        context = ssl.create_default_context(cafile=authority / "certificate.pem")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with (
            urllib3.PoolManager(ssl_context=context, retries=False) as pools,
            pytest.raises(urllib3.exceptions.SSLError),
        ):
            pools.request("GET", started.advertised_url)
        await_no_client(started)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("ssl.keystore.type", "JKS", "is a PEM file: set it to PEM"),
        ("ssl.truststore.type", "PKCS12", "is a PEM file: set it to PEM"),
        ("ssl.keystore.location", "/nowhere.pem", "no such file"),
        ("ssl.enabled.protocols", "SSLv3", "only TLSv1.2 and TLSv1.3 are spoken"),
        ("ssl.key.password", "wrong", "The key can't be used"),
        ("ssl.cipher.suites", "NONE_SUCH", "OpenSSL has no counterpart of NONE_SUCH"),
    ],
)
def test_bad_tls_settings_are_errors_without_secrets(
    authority: Path, key: str, value: str, reason: str
) -> None:
    with (
        pytest.raises(ConfigError) as raised,
        server(MemoryHerder(), https(authority, **{key.replace(".", "_"): value})),
    ):
        pass
    assert key in str(raised.value)
    assert reason in str(raised.value)
    assert SECRET not in str(raised.value)
