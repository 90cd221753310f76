"""Opening connections: errors name the address, arrive within the timeout and allocate little memory."""

import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

import pytest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, UnsupportedVersionError
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.net.connection import Connection
from tests.support.connections import connection
from tests.support.proxy import proxied

TIMEOUT_S: Final = 2.0
"""A broker on a busy machine answers within this."""
PATIENCE_S: Final = 15.0
"""Much longer than the timeout."""

Answer = Callable[[socket.socket], None]


def silence(peer: socket.socket) -> None:
    """Respond with nothing until the client closes the connection."""
    while peer.recv(4096):
        pass


def hang_up(peer: socket.socket) -> None:
    peer.recv(4096)


def web_server(peer: socket.socket) -> None:
    peer.recv(4096)
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def tls_server(peer: socket.socket) -> None:
    """Respond with a TLS alert; read as a frame size, its first bytes mean 336 MiB (KAFKA-4090)."""
    peer.recv(4096)
    peer.sendall(bytes.fromhex("15030300020250"))
    silence(peer)


def half_an_answer(peer: socket.socket) -> None:
    peer.recv(4096)
    peer.sendall(b"\x00\x00\x01\x00\x00\x00")
    silence(peer)


def nonsense(peer: socket.socket) -> None:
    """Respond with a frame that has the request's correlation id and an invalid body."""
    peer.recv(4096)
    peer.sendall(b"\x00\x00\x00\x0a" + b"\x00\x00\x00\x00" + b"\x00\x00\x7f\xff\xff\xff")
    silence(peer)


def out_of_order(peer: socket.socket) -> None:
    peer.recv(4096)
    peer.sendall(b"\x00\x00\x00\x0e" + b"\x00\x00\x00\x63" + bytes(10))
    silence(peer)


@contextmanager
def served_by(answer: Answer) -> Iterator[int]:
    """Serve every connection with this response, one after the other; yields the port."""
    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, answer: Answer) -> None:
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer, suppress(ConnectionError):  # a client that gives up may not read to the end
            peer.settimeout(10)
            answer(peer)


def impatient(*ports: int) -> ConnectionSettings:
    addresses = tuple((HOST, port) for port in ports)
    return ConnectionSettings(addresses, request_timeout_s=TIMEOUT_S, connect_timeout_s=TIMEOUT_S)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (silence, "did not answer in time"),
        (hang_up, "closed the connection"),
        (web_server, "is this a Kafka port?"),
        (tls_server, "speaks TLS: set security.protocol=SSL"),
        (half_an_answer, "did not answer in time"),
        (nonsense, "is this a Kafka port?"),
        (out_of_order, "out of order"),
    ],
)
def test_server_that_is_no_broker_is_reported_within_the_timeout(answer: Answer, message: str) -> None:
    started = time.monotonic()
    with served_by(answer) as port, pytest.raises(DisconnectedError) as error:
        Connection.open(HOST, port, impatient(port))
    assert f"{HOST}:{port}" in str(error.value)
    assert message in str(error.value)
    assert time.monotonic() - started < PATIENCE_S


def test_oversized_frame_header_allocates_no_memory() -> None:
    tracemalloc.start()
    try:
        with served_by(tls_server) as port, pytest.raises(DisconnectedError):
            Connection.open(HOST, port, impatient(port))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_error_names_a_closed_port() -> None:
    port = ReservedPort()
    port.release()
    with pytest.raises(DisconnectedError, match=rf"can't connect to {HOST}:{port.number}: .*refused"):
        Connection.open(HOST, port.number, impatient(port.number))


def test_error_names_an_unknown_host() -> None:
    with pytest.raises(DisconnectedError, match=r"can't connect to nobody\.invalid:9092: "):
        Connection.open("nobody.invalid", 9092, impatient())


def test_cluster_is_found_by_any_server_and_each_failure_is_reported(
    target_cluster: LocalCluster,
) -> None:
    ((_, port),) = connection(target_cluster).bootstrap_servers
    with served_by(hang_up) as deaf, served_by(silence) as dumb:
        metadata = read_metadata(impatient(deaf, dumb, port), [])
        assert [broker.port for broker in metadata.brokers.values()] == [port]
        with pytest.raises(DisconnectedError) as error:
            read_metadata(impatient(deaf, dumb), [])
    assert str(error.value) == f"{HOST}:{deaf} closed the connection; {HOST}:{dumb} did not answer in time"


def test_unresponsive_broker_is_skipped_after_the_connect_timeout(target_cluster: LocalCluster) -> None:
    ((_, port),) = connection(target_cluster).bootstrap_servers
    with served_by(silence) as hung:
        settings = replace(impatient(hung, port), request_timeout_s=60.0)
        started = time.monotonic()
        assert read_metadata(settings, []).brokers
        assert time.monotonic() - started < PATIENCE_S


def test_known_cluster_is_reached_without_its_bootstrap_servers(
    target_cluster: LocalCluster,
) -> None:
    ((_, port),) = connection(target_cluster).bootstrap_servers
    with proxied(("localhost", port)) as (entry,):  # Metadata has the broker's address
        settings = ConnectionSettings(((HOST, entry.port),))
        read_metadata(settings, [])
    with pytest.raises(DisconnectedError, match=f"can't connect to {HOST}:{entry.port}"):
        Connection.open(HOST, entry.port, settings)
    assert [broker.port for broker in read_metadata(settings, []).brokers.values()] == [port]


def test_api_version_is_the_highest_that_both_sides_support(target_cluster: LocalCluster) -> None:
    settings = connection(target_cluster)
    opened = Connection.open(*settings.bootstrap_servers[0], settings)
    try:
        assert opened.version_of(1, "Fetch", 10, 12) == 12
        with pytest.raises(UnsupportedVersionError, match=r"speaks v4 to v\d+ of Fetch, needed is v1 to v2"):
            opened.version_of(1, "Fetch", 1, 2)
        with pytest.raises(UnsupportedVersionError, match=r"does not know Nothing, needed is v0 to v1"):
            opened.version_of(999, "Nothing", 0, 1)
        for _ in range(2):
            answer = opened.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=10)
            assert [broker.port for broker in answer.brokers] == [settings.bootstrap_servers[0][1]]
    finally:
        opened.close()
