"""Measures how soon a page shows what has happened: from a record's acknowledgement to its position there.

`python -m bench.seen [TIMES]` starts two clusters and a mirror, and listens to what an open page receives.
Records are written at random moments, one after the other.
"""

import http.client
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from bench.bed import Bed, opened
from bench.errors import BenchError
from bench.measures import percentile
from bench.side_process import SideProcess
from bench.sides import TARGET_ALIAS, Side
from bench.throughput import Job, command
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.ui.page_looks import query

_TOPIC: Final = "seen"
_ALIAS: Final = "seen"
_POSITION: Final = re.compile(rb'data-label="Position" class="r"><span class="num">([\d,]+)<')
_PAUSE_MAX_S: Final = 2.0
_TIMEOUT_S: Final = 120.0
_RETRY_S: Final = 0.2


class OpenPage:
    """The page of a topic with one partition: the position that it shows."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._position = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def await_position(self, position: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._position >= position, _TIMEOUT_S):
                raise BenchError(f"position {position} was not seen within {_TIMEOUT_S:.0f} s")

    def _run(self) -> None:
        path = f"/ui/live/topic?{query(f'{_ALIAS}->{TARGET_ALIAS}', _TOPIC)}"
        while True:
            try:
                connection = http.client.HTTPConnection(HOST, self._port, timeout=_TIMEOUT_S)
                connection.request("GET", path)
                for line in connection.getresponse():
                    self._take(line)
            except OSError:
                time.sleep(_RETRY_S)

    def _take(self, line: bytes) -> None:
        if (found := _POSITION.search(line)) is not None:
            with self._changed:
                self._position = int(found[1].replace(b",", b""))
                self._changed.notify_all()


@contextmanager
def mirror(bed: Bed) -> Iterator[OpenPage]:
    port = ReservedPort()
    bed.source.topics.create(_TOPIC, 1)
    job = Job(_TOPIC, 1, _ALIAS, _TOPIC, 0, options=("--http", f"{HOST}:{port.number}"))
    started = command(bed, Side.OURS, bed.mirroring(_ALIAS, _TOPIC), job)
    with SideProcess.start(started, bed.folder / "seen.log") as process:
        yield OpenPage(port.number)
        process.stop()
    port.release()


def delays(bed: Bed, page: OpenPage, times: int) -> Iterator[float]:
    """Seconds, of one record after the other; the first waits for the mirror's start."""
    producer = Producer({"bootstrap.servers": bed.source.bootstrap, "linger.ms": 0})
    for number in range(1, times + 2):
        time.sleep(random.uniform(0, _PAUSE_MAX_S))
        producer.produce(_TOPIC, b"record", partition=0)
        producer.flush()
        began = time.monotonic()
        page.await_position(number)
        yield time.monotonic() - began


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with (
        tempfile.TemporaryDirectory(prefix="sparkmirror-bench-") as folder,
        opened(Path(folder), 1, print) as bed,
        mirror(bed) as page,
    ):
        start, *found = delays(bed, page, times)
    ordered = sorted(found)
    print(
        f"seen after a start of {start:.1f} s, {times} records: median {percentile(ordered, 50):.2f} s, "
        f"95 % {percentile(ordered, 95):.2f} s, at most {ordered[-1]:.2f} s"
    )


if __name__ == "__main__":
    main()
