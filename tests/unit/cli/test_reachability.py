import threading
from pathlib import Path

import pytest

from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.reachability import clusters_of, reachable, silent_clusters
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError, DisconnectedError
from sparkmirror.settings.configured import ConfiguredFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file

FILE = """\
clusters = west, east
west.bootstrap.servers = w:1
east.bootstrap.servers = e:1, e:2
west->east.enabled = true
"""


@pytest.fixture
def flows(tmp_path: Path) -> list[ConfiguredFlow]:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    return read_mirror_maker_file(file).flows


def test_each_cluster_is_asked_once_and_named_with_its_setting(flows: list[ConfiguredFlow]) -> None:
    asked = []

    def ask(settings: ConnectionSettings) -> None:
        asked.append(settings.alias)
        if settings.alias == "east":
            raise DisconnectedError("can't connect to e:1: refused")

    assert silent_clusters(clusters_of(flows), ask) == {
        "east": "east does not answer (east.bootstrap.servers = e:1,e:2): can't connect to e:1: refused"
    }
    assert sorted(asked) == ["east", "west"]


def test_what_a_cluster_answers_is_told_as_it_is(flows: list[ConfiguredFlow]) -> None:
    def refuse(settings: ConnectionSettings) -> None:
        if settings.alias == "west":
            raise AuthenticationError("west: wrong password")

    assert silent_clusters(clusters_of(flows), refuse) == {"west": "west: wrong password"}


def test_a_slow_cluster_is_told_while_it_is_waited_for(flows: list[ConfiguredFlow]) -> None:
    told: list[str] = []
    is_told = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        is_told.set()

    def ask(settings: ConnectionSettings) -> None:
        if settings.alias == "east":
            assert is_told.wait(30)

    assert silent_clusters(clusters_of(flows), ask, tell) == {}
    assert told == ["waiting for east (e:1,e:2) …\n"]


def test_what_can_be_told_is_told_and_the_rest_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    servers = "".join(f"{alias}.bootstrap.servers = {alias}:9092\n" for alias in ("A", "B", "C"))
    file.write_text(f"clusters = A, B, C\n{servers}A->B.enabled = true\nA->C.enabled = true\n")
    flows = mirroring_flows(file, read_mirror_maker_file(file).flows)

    def ask(settings: ConnectionSettings) -> None:
        if settings.cluster == "C":
            raise DisconnectedError("no answer")

    assert [flow.name for flow in reachable(flows, "verify", ask)] == ["A->B"]
    assert capsys.readouterr().err == (
        "sparkmirror verify: A->C: unknown: C does not answer (C.bootstrap.servers = C:9092): no answer\n"
    )
    with pytest.raises(DisconnectedError, match="C does not answer"):
        reachable([flow for flow in flows if flow.name == "A->C"], "verify", ask)
