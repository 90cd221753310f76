"""`status` and `lag` of a file answer within seconds while a cluster is away, and tell what they can.

Clusters are in memory; those that are away refuse connections, leave them open or don't accept them.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.cli.command_runner import run_command
from tests.memory.server import MemoryServer, serving
from tests.support.broker_data import create_topic
from tests.support.waiting import patience

pytestmark = pytest.mark.memory

WITHIN_S: Final = 2.4
"""Python's own start takes half a second more."""
SERVERS: Final = 4


@pytest.fixture(scope="module")
def healthy() -> Iterator[tuple[MemoryServer, MemoryServer]]:
    with serving("A of outages") as source, serving("C of outages") as target:
        create_topic(source.bootstrap_servers, "orders", partitions=3)
        yield source, target


def _bound(stack: ExitStack) -> socket.socket:
    server = stack.enter_context(closing(socket.socket()))
    server.bind(("127.0.0.1", 0))
    return server


def _refusing(stack: ExitStack) -> socket.socket:
    return _bound(stack)


def _silent(stack: ExitStack) -> socket.socket:
    server = _bound(stack)
    server.listen(50)
    return server


def _full(stack: ExitStack) -> socket.socket:
    """It accepts no connection, as an address behind a firewall."""
    server = _bound(stack)
    server.listen(0)
    for _ in range(3):
        waiting = stack.enter_context(closing(socket.socket()))
        waiting.setblocking(False)
        waiting.connect_ex(server.getsockname())
    return server


@pytest.mark.parametrize("command", ["status", "lag"])
@pytest.mark.parametrize("servers", [1, SERVERS])
@pytest.mark.parametrize("away", [_refusing, _silent, _full], ids=["refuses", "silent", "unreachable"])
def test_a_look_in_an_outage_takes_less_than_three_seconds(
    healthy: tuple[MemoryServer, MemoryServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    away: object,
    servers: int,
    command: str,
) -> None:
    assert callable(away)
    with ExitStack() as stack:
        addresses = [away(stack).getsockname() for _ in range(servers)]
        file = tmp_path / "mm2.properties"
        file.write_text(
            f"clusters = A, B, C\n"
            f"A.bootstrap.servers = {healthy[0].bootstrap_servers}\n"
            f"B.bootstrap.servers = {','.join(f'{host}:{port}' for host, port in addresses)}\n"
            f"C.bootstrap.servers = {healthy[1].bootstrap_servers}\n"
            "A->B.enabled = true\nA->C.enabled = true\nemit.heartbeats.enabled = false\n"
        )
        began = time.monotonic()
        code = run_command([command, str(file)])
        took_s = time.monotonic() - began
    out = capsys.readouterr().out
    assert "A->B: unknown: B does not answer" in out.splitlines()[0]
    assert "A->C" in out
    assert code != 0
    assert took_s < WITHIN_S * patience()


@pytest.mark.parametrize("command", ["status", "lag"])
def test_a_look_at_a_mirror_that_has_never_run_waits_for_none_of_its_topics(
    healthy: tuple[MemoryServer, MemoryServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"clusters = A, C\n"
        f"A.bootstrap.servers = {healthy[0].bootstrap_servers}\n"
        f"C.bootstrap.servers = {healthy[1].bootstrap_servers}\n"
        "A->C.enabled = true\n"
    )
    began = time.monotonic()
    code = run_command([command, str(file)])
    assert time.monotonic() - began < WITHIN_S * patience()
    assert code == 1
    assert "no mirror of this file has run yet" in capsys.readouterr().out
