from typing import cast

import pytest

from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.commands.run import _Start
from sparkmirror.cli.service_manager import ServiceManager
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.mirror.dedicated import MirrorMaker


def metrics_address(text: str) -> tuple[str, int]:
    address: tuple[str, int] = (
        build_parser().parse_args(["run", "mm2.properties", f"--metrics-port={text}"]).metrics_port
    )
    return address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9404", ("", 9404)),
        (":9404", ("", 9404)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:9404", ("::1", 9404)),
        ("metrics.example:65535", ("metrics.example", 65535)),
    ],
)
def test_metrics_addresses_are_parsed(text: str, address: tuple[str, int]) -> None:
    assert metrics_address(text) == address


@pytest.mark.parametrize("text", ["", "x", "65536", "-1", "localhost", "localhost:", "²"])
def test_invalid_metrics_addresses_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        metrics_address(text)
    assert ended.value.code == 255
    assert "for example 9404 or 127.0.0.1:9404" in capsys.readouterr().err


class Mirror:
    """A mirror whose Spark runs, and whether its clusters have answered."""

    def __init__(self) -> None:
        self.is_started = False
        self.answered = {"A": False, "B": True}

    def up(self) -> dict[str, bool]:
        return self.answered

    def looks(self) -> list[ConnectorLook]:
        return []


class Manager:
    def __init__(self) -> None:
        self.ready: list[bool] = []

    def turn(self, status: object, *, is_ready: bool) -> None:
        assert callable(status)
        self.ready.append(is_ready)


def test_the_service_manager_hears_of_each_turn_and_of_readiness_when_every_cluster_has_answered() -> None:
    mirror, manager = Mirror(), Manager()
    start = _Start(cast("MirrorMaker", mirror), cast("ServiceManager", manager), 0.0)
    start.check()
    mirror.is_started = True
    start.check()
    mirror.answered["A"] = True
    start.check()
    mirror.answered["A"] = False
    start.check()
    assert manager.ready == [False, False, True, True]
