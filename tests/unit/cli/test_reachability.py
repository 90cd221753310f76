import threading
from pathlib import Path

import pytest

from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.reachability import clusters_of, silent_clusters
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError, DisconnectedError
from sparkmirror.settings.configured import ConfiguredFlow

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
