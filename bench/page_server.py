"""Serves the pages of a mirror whose partitions all report new records each second, without a broker.

`python -m bench.page_server PARTITIONS` prints its address, and ends when its standard input does. `/metrics`
tells the CPU seconds that reports took.
"""

import sys
import threading
import time
from typing import Final

from bench.view import ASSIGNED_TASKS, FLOW, groups_look, report, sources_of
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.connect.rest.mirror_app import ConnectApp, mirror_app
from sparkmirror.connect.rest.rest_settings import HTTP, Listener, RestSettings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.metrics.looks import ConnectorLook, SourceLook
from sparkmirror.metrics.source_meter import SourceMeter
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node

_OF: Final = SourceLook(FLOW, ConnectorName("MirrorSourceConnector"), "source")


class Reported:
    """A meter that gets the reports of all partitions each second."""

    def __init__(self, partitions: int) -> None:
        self._sources = sources_of(partitions)
        self._assigned = tuple(tuple(self._sources[task::ASSIGNED_TASKS]) for task in range(ASSIGNED_TASKS))
        self._meter = SourceMeter()
        self._groups = groups_look()
        self.cpu_s = 0.0
        """CPU seconds of making and taking reports, which is no cost of looking at them."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def looks(self) -> list[ConnectorLook]:
        return [self._meter.look(_OF, self._assigned, time.monotonic()), self._groups]

    def cpu(self) -> tuple[str, bytes]:
        """Answer with the CPU seconds of reports, in the place of metrics."""
        return "text/plain", str(self.cpu_s).encode()

    def _run(self) -> None:
        at = 0
        while not self._ended.wait(1.0):
            at += 1
            self._meter.take([report(source, at) for source in self._sources], None, time.monotonic())
            self.cpu_s = time.thread_time()


def main() -> None:
    reported, port = Reported(int(sys.argv[1])), ReservedPort()
    settings = RestSettings(listeners=(Listener(HTTP, HOST, port.number),))
    view = CurrentView(lambda: Node("node", "1"), reported.looks)
    server = RestServer(settings)
    server.bind()
    server.start(ConnectApp(mirror_app(view, reported.cpu, lambda: True, settings)))
    reported.start()
    print(f"http://{HOST}:{port.number}", flush=True)
    sys.stdin.read()
    reported.stop()
    server.stop()
    port.release()


if __name__ == "__main__":
    main()
