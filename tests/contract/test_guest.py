"""`Mirror` between clusters in memory, where Spark's tasks are threads."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror import Mirror, MirrorListener
from sparkmirror.spark.spark_on_demand import SparkOnDemand
from sparkmirror.storage.events import Event
from tests.memory.server import MemoryServer, serving
from tests.support.broker_data import append, create_topic, delete_records, keyed, numbered
from tests.support.mirror import one_way
from tests.support.threaded_spark import ThreadedSpark
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

TOPIC: Final = "orders"
PROGRESS: Final = "mm2-progress.A.internal"
WAIT_S: Final = 60.0


@pytest.fixture
def source() -> Iterator[MemoryServer]:
    with serving("id of A") as server:
        create_topic(server.bootstrap_servers, TOPIC)
        append(server, TOPIC, numbered(100))
        yield server


@pytest.fixture
def target() -> Iterator[MemoryServer]:
    with serving("id of B") as server:
        yield server


@pytest.fixture
def file(source: MemoryServer, target: MemoryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(SparkOnDemand, "beside", lambda *_: ThreadedSpark().as_demanded())
    path = tmp_path / "mm2.properties"
    path.write_text(javaproperties.dumps(one_way(source, target, TOPIC)), encoding="ascii")
    return path


def test_limits_that_change_in_the_file_take_effect(file: Path, target: MemoryServer) -> None:
    with Mirror(file, spark=object()) as mirror:
        mirror.start()
        with file.open("a", encoding="ascii") as lines:
            lines.write("\nA->B.max.bytes.per.second = 123456\n")
        await_value(
            lambda: "123456" in str(keyed(target, PROGRESS)), WAIT_S, lambda: str(keyed(target, PROGRESS))
        )


class Incidents(MirrorListener):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.told = threading.Event()

    def onIncident(self, event: Event) -> None:  # noqa: N802
        self.texts.append(f"{event.about}: {event.text}")
        self.told.set()


def test_a_listener_is_told_what_was_lost(file: Path, source: MemoryServer) -> None:
    with Mirror(file, spark=object()) as mirror:
        mirror.start().await_lag(0, timeout=WAIT_S)
    append(source, TOPIC, numbered(100, 100))
    delete_records(source, TOPIC, 150)
    listener = Incidents()
    with Mirror(file, spark=object()) as mirror:
        mirror.addListener(listener)
        mirror.start()
        assert listener.told.wait(WAIT_S)
    (text,) = listener.texts
    assert text == (
        "orders-0: offsets 100 to 149 were gone from the source before they were copied (50 records); "
        "continuing from 150"
    )
