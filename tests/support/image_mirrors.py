"""Files of mirrors that run in containers, and what such mirrors show."""

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

import javaproperties

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import keyed
from tests.support.containers import Container
from tests.support.mirror import REPLICATION
from tests.support.waiting import await_value

COPY_TIMEOUT_S: Final = 90.0


def mirror_file(folder: Path, source: LocalCluster, target: LocalCluster, topic: str, **more: str) -> Path:
    """Write an mm2.properties whose aliases are the topic's name."""
    a, b = f"{topic}-a", f"{topic}-b"
    values = {
        "clusters": f"{a}, {b}",
        f"{a}.bootstrap.servers": source.bootstrap_servers,
        f"{b}.bootstrap.servers": target.bootstrap_servers,
        f"{a}->{b}.enabled": "true",
        f"{a}->{b}.topics": topic,
        "heartbeats.replication.enabled": "false",
        **REPLICATION,
        **more,
    }
    file = folder / "mm2.properties"
    file.write_text(javaproperties.dumps(values), encoding="ascii")
    return file


def await_first(container: Container, target: LocalCluster, topic: str) -> None:
    """Wait for the first records."""
    _await(container, lambda: len(keyed(target, topic)) > 0, f"{topic} has no records")


def await_copied(container: Container, target: LocalCluster, topic: str, count: int) -> None:
    _await(container, lambda: len(keyed(target, topic)) == count, f"{topic} has not {count} records")


def _await(container: Container, is_so: Callable[[], bool], otherwise: str) -> None:
    def asked_again() -> bool:
        container.assert_runs()
        return is_so()

    await_value(asked_again, COPY_TIMEOUT_S, lambda: f"{otherwise}:\n{container.text()}")


def asked(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())
