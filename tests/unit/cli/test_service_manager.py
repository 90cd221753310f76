import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cli.service_manager import ServiceManager


class Manager:
    """The socket that systemd listens at, and the environment that it gives a service."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        self._socket.setblocking(False)
        self.environ = {"NOTIFY_SOCKET": address, "OTHER": "stays"}
        self.now = 100.0

    def service(self, **more: str) -> ServiceManager:
        self.environ.update(more)
        return ServiceManager(self.environ, lambda: self.now)

    def told(self) -> list[list[str]]:
        """Each message that has come since, as its lines."""
        found = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode().splitlines())
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = str(tmp_path / "notify")
    made = Manager(name if request.param == "file" else f"@{name}")
    yield made
    made.close()


def fine() -> str:
    return "A->B: caught up"


def test_a_start_is_lengthened_until_it_is_ready(manager: Manager) -> None:
    service = manager.service()
    service.turn(lambda: "waits for A", is_ready=False)
    assert manager.told() == [["EXTEND_TIMEOUT_USEC=300000000", "STATUS=waits for A"]]
    service.turn(fine, is_ready=True)
    assert manager.told() == [["READY=1", "WATCHDOG=1", "STATUS=A->B: caught up"]]


def test_ready_is_said_once_and_not_taken_back(manager: Manager) -> None:
    service = manager.service()
    service.turn(fine, is_ready=True)
    manager.now += 60
    service.turn(lambda: "A->B: retrying", is_ready=False)
    assert manager.told()[1:] == [["WATCHDOG=1", "STATUS=A->B: retrying"]]


@pytest.mark.parametrize(
    ("limit", "quiet_s", "due_s"), [("180000000", 9.9, 10), ("6000000", 1.9, 2), ("", 9.9, 10)]
)
def test_pings_come_thrice_in_the_time_of_the_watchdog(
    manager: Manager, limit: str, quiet_s: float, due_s: float
) -> None:
    service = manager.service(WATCHDOG_USEC=limit, WATCHDOG_PID=str(os.getpid()))
    service.turn(fine, is_ready=True)
    manager.told()
    manager.now += quiet_s
    service.turn(fine, is_ready=True)
    assert manager.told() == []
    manager.now += due_s - quiet_s
    service.turn(fine, is_ready=True)
    assert manager.told() == [["WATCHDOG=1", "STATUS=A->B: caught up"]]


def test_a_loop_that_makes_no_turn_pings_nothing(manager: Manager) -> None:
    service = manager.service(WATCHDOG_USEC="6000000")
    service.turn(fine, is_ready=True)
    manager.told()
    manager.now += 3600
    assert manager.told() == []


@pytest.mark.parametrize(("limit", "pid"), [("6000000", "1"), ("soon", ""), ("0", ""), ("-1", "")])
def test_a_watchdog_of_another_process_or_without_a_time_changes_nothing(
    manager: Manager, limit: str, pid: str
) -> None:
    service = manager.service(WATCHDOG_USEC=limit, WATCHDOG_PID=pid)
    service.turn(fine, is_ready=True)
    manager.now += 9.9
    service.turn(fine, is_ready=True)
    assert len(manager.told()) == 1


def test_a_status_is_one_line(manager: Manager) -> None:
    service = manager.service()
    service.turn(lambda: "A->B: a\nREADY=1\ud800", is_ready=False)
    assert manager.told() == [["EXTEND_TIMEOUT_USEC=300000000", "STATUS=A->B: a READY=1\\ud800"]]


def test_the_end_in_order_is_told(manager: Manager) -> None:
    manager.service().stopping()
    assert manager.told() == [["STOPPING=1", "STATUS=stopping in order"]]


def test_processes_below_do_not_inherit_it(manager: Manager) -> None:
    manager.service(WATCHDOG_USEC="6000000", WATCHDOG_PID=str(os.getpid()))
    assert manager.environ == {"OTHER": "stays"}


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}])
def test_nobody_is_told_where_nobody_asks(environ: dict[str, str]) -> None:
    def never() -> str:
        raise AssertionError

    service = ServiceManager(environ)
    service.turn(never, is_ready=True)
    service.stopping()


@pytest.mark.parametrize("address", ["/nowhere/notify", "vsock:2:1234"])
def test_a_socket_that_is_not_there_is_no_failure(address: str, caplog: pytest.LogCaptureFixture) -> None:
    ServiceManager({"NOTIFY_SOCKET": address}).turn(fine, is_ready=True)
    assert f"NOTIFY_SOCKET={address} can't be told" in caplog.text


def test_a_manager_that_does_not_read_holds_nobody_up(manager: Manager) -> None:
    service = manager.service()
    for _ in range(2000):
        manager.now += 60
        service.turn(fine, is_ready=True)
    assert 0 < len(manager.told()) < 2000
