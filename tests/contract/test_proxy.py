"""The fault-injecting proxy, tested between plain sockets."""

import errno
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.proxy import HOST, Address, Api, Disruption, Moment, Proxy, proxied
from tests.support.waiting import patience

PATIENCE_S = 10.0


class Broker:
    """Responds to Metadata with its own address, to other requests with their body."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.address: Address = self._listener.getsockname()
        self.received: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while frame := read_frame(connection):
                    self.received.append(frame)
                    api, _, correlation_id = struct.unpack_from(">hhi", frame)
                    host, port = self.address
                    body = host.encode() + struct.pack(">i", port) if api == Api.METADATA else frame[8:]
                    connection.sendall(framed(struct.pack(">i", correlation_id) + body))
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Client:
    def __init__(self, proxy: Proxy) -> None:
        self.socket = socket.create_connection(proxy.address, PATIENCE_S)
        self._number = 0

    def send(self, api: Api, body: bytes = b"") -> int:
        self._number += 1
        self.socket.sendall(framed(struct.pack(">hhi", api, 7, self._number) + body))
        return self._number

    def receive(self) -> tuple[int, bytes]:
        """Correlation id and body; (0, b"") at the end."""
        frame = read_frame(self.socket)
        return (struct.unpack_from(">i", frame)[0], frame[4:]) if frame else (0, b"")

    def ask(self, api: Api, body: bytes = b"") -> bytes:
        number = self.send(api, body)
        answered, answer = self.receive()
        assert answered == number
        return answer

    def is_silent(self) -> bool:
        """Whether no response arrives within 50 ms."""
        self.socket.settimeout(0.05)
        try:
            return self.socket.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_S)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def read_frame(connection: socket.socket) -> bytes:
    """Read a frame without its size; b"" at the end of the stream, also inside a frame."""
    size = connection.recv(4, socket.MSG_WAITALL)
    if len(size) < 4:
        return b""
    (left,) = struct.unpack(">i", size)
    content = b""
    while len(content) < left and (part := connection.recv(left - len(content))):
        content += part
    return content if len(content) == left else b""


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with proxied(broker.address) as (made,):
        yield made


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Client]:
    made = Client(proxy)
    with made.socket:
        yield made


def test_frames_of_every_size_are_forwarded_unchanged(client: Client, proxy: Proxy) -> None:
    bodies = [bytes([size % 256]) * size for size in (0, 1, 3, 4, 1000, 300_000, 3_000_000)]
    numbers = [client.send(Api.FETCH, body) for body in bodies[:5]]
    assert [client.receive() for _ in numbers] == list(zip(numbers, bodies, strict=False))
    for body in bodies[5:]:
        assert client.ask(Api.PRODUCE, body) == body
    figures = proxy.figures
    assert (figures.requests, figures.answers) == ({Api.FETCH: 5, Api.PRODUCE: 2},) * 2
    assert (figures.connections, figures.opened) == (1, 1)


def test_metadata_names_proxies_instead_of_brokers() -> None:
    first, second = Broker(), Broker()
    with proxied(first.address, second.address) as proxies:
        for proxy in proxies:
            client = Client(proxy)
            with client.socket:
                assert client.ask(Api.METADATA) == HOST.encode() + struct.pack(">i", proxy.port)
                address = HOST.encode() + struct.pack(">i", proxy.port)
                assert client.ask(Api.FETCH, address) == address
    first.close()
    second.close()


def test_moved_proxy_resets_connections_and_metadata_has_its_new_port(client: Client, proxy: Proxy) -> None:
    before = proxy.port
    proxy.move()
    assert proxy.port != before
    with pytest.raises(ConnectionResetError):
        client.receive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, before), PATIENCE_S)
    again = Client(proxy)
    with again.socket:
        assert again.ask(Api.METADATA).endswith(struct.pack(">i", proxy.port))


def test_delays_do_not_reduce_the_bandwidth(client: Client, proxy: Proxy) -> None:
    client.ask(Api.FETCH)
    proxy.delay(to_broker_s=0.1, to_client_s=0.2)
    began = time.monotonic()
    body = bytes(1 << 20)
    numbers = [client.send(Api.PRODUCE, body) for _ in range(20)]
    assert [client.receive() for _ in numbers] == [(number, body) for number in numbers]
    took = time.monotonic() - began
    # Without pipelining they would take 6 s.
    assert 0.3 <= took < 3 * patience()
    figures = proxy.figures
    assert 1 < figures.produce_requests_peak <= 20  # all of them, where the client gets its core at once
    assert figures.produce_bytes_peak == figures.produce_requests_peak * (len(body) + 12)


def test_throttle_limits_each_direction(client: Client, proxy: Proxy) -> None:
    proxy.throttle(to_broker=1e6)
    began = time.monotonic()
    client.ask(Api.PRODUCE, bytes(300_000))
    assert time.monotonic() - began >= 0.3
    proxy.throttle(to_client=1e6)
    began = time.monotonic()
    client.ask(Api.PRODUCE, bytes(300_000))
    assert time.monotonic() - began >= 0.3


def test_silenced_proxy_accepts_requests_and_forwards_them_later(
    client: Client, proxy: Proxy, broker: Broker
) -> None:
    proxy.silence()
    client.send(Api.PRODUCE, b"held")
    late = Client(proxy)
    with late.socket:
        late.send(Api.PRODUCE, b"back")
        assert client.is_silent()
        assert not broker.received
        proxy.restore()
        assert (client.receive(), late.receive()) == ((1, b"held"), (1, b"back"))


def test_held_request_arrives_after_its_client_has_disconnected(proxy: Proxy, broker: Broker) -> None:
    proxy.silence()
    client = Client(proxy)
    with client.socket:
        client.send(Api.PRODUCE, b"late")
        proxy.await_figures(lambda figures: figures.requests[Api.PRODUCE] == 1)
    proxy.restore()
    proxy.await_figures(lambda figures: figures.answers[Api.PRODUCE] == 1 and figures.connections == 0)
    assert [frame[8:] for frame in broker.received] == [b"late"]


def test_refusing_proxy_rejects_new_connections_and_keeps_existing_ones(client: Client, proxy: Proxy) -> None:
    for _ in range(2):
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(proxy.address, PATIENCE_S)
        assert client.ask(Api.FETCH, b"here") == b"here"
        proxy.restore()
        Client(proxy).socket.close()


@pytest.mark.parametrize("disruption", [Disruption.RESET, Disruption.END])
def test_a_cut_reaches_every_connection(client: Client, proxy: Proxy, disruption: Disruption) -> None:
    client.ask(Api.FETCH)
    proxy.cut(disruption)
    assert ending(client) == {Disruption.RESET: errno.ECONNRESET, Disruption.END: None}[disruption]
    proxy.await_figures(lambda figures: figures.connections == 0)
    again = Client(proxy)
    with again.socket:
        assert again.ask(Api.FETCH, b"again") == b"again"


def test_a_half_closed_connection_still_takes_requests(client: Client, proxy: Proxy, broker: Broker) -> None:
    client.ask(Api.FETCH)
    proxy.half_close()
    assert ending(client) is None
    client.send(Api.PRODUCE, b"heard")
    proxy.await_figures(lambda figures: figures.answers[Api.PRODUCE] == 1)
    assert broker.received[-1][8:] == b"heard"


@pytest.mark.parametrize("disruption", [Disruption.RESET, Disruption.END])
@pytest.mark.parametrize("moment", Moment)
def test_armed_cut_ends_the_connection_at_its_moment(
    proxy: Proxy, broker: Broker, moment: Moment, disruption: Disruption
) -> None:
    client = Client(proxy)
    proxy.disrupt_next(Api.PRODUCE, moment, disruption, after=1)
    with client.socket:
        assert client.ask(Api.FETCH, b"other") == b"other"
        assert client.ask(Api.PRODUCE, b"first") == b"first"
        client.send(Api.PRODUCE, b"second")
        assert ending(client) in {errno.ECONNRESET, None}
    proxy.await_figures(lambda figures: figures.disruptions == 1 and figures.connections == 0)
    if moment is Moment.REQUEST_HALF_SENT:
        assert broker.received[-1].endswith(b"first")
    elif moment is not Moment.REQUEST_SENT:  # the broker may or may not have read it
        assert broker.received[-1].endswith(b"second")
    again = Client(proxy)
    with again.socket:
        assert again.ask(Api.PRODUCE, b"again") == b"again"


def test_swallowing_drops_only_one_response(client: Client, proxy: Proxy) -> None:
    proxy.disrupt_next(Api.PRODUCE, Moment.ANSWER_DUE, Disruption.SWALLOW)
    client.send(Api.PRODUCE, b"lost")
    assert client.is_silent()
    assert client.ask(Api.PRODUCE, b"found") == b"found"


def test_silenced_connection_leaves_others_working(client: Client, proxy: Proxy) -> None:
    proxy.disrupt_next(Api.PRODUCE, Moment.ANSWER_DUE, Disruption.SILENCE)
    client.send(Api.PRODUCE)
    proxy.await_figures(lambda figures: figures.disruptions == 1)
    client.send(Api.PRODUCE)
    assert client.is_silent()
    other = Client(proxy)
    with other.socket:
        assert other.ask(Api.PRODUCE, b"other") == b"other"


def ending(client: Client) -> int | None:
    """Return the error at which the connection ended, None for an orderly end."""
    try:
        while client.socket.recv(1 << 16):
            pass
    except OSError as error:
        return error.errno
    return None


def test_request_held_on_one_connection_arrives_complete_later(
    client: Client, proxy: Proxy, broker: Broker
) -> None:
    proxy.disrupt_next(Api.PRODUCE, Moment.REQUEST_HALF_SENT, Disruption.HOLD)
    held = client.send(Api.PRODUCE, b"held")
    proxy.await_figures(lambda figures: figures.disruptions == 1)
    other = Client(proxy)
    with other.socket:
        assert other.ask(Api.PRODUCE, b"other") == b"other"
    proxy.restore()
    assert client.receive() == (held, b"held")
    assert [frame[8:] for frame in broker.received] == [b"other", b"held"]
