"""A Connect worker as a measured side: started as `connect-distributed.sh` does it, asked over its API."""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import urllib3

from bench.bed import Bed
from bench.errors import BenchError
from bench.results import Holdings
from bench.side_process import SideProcess
from bench.sides import Side, java_worker_command, our_worker_command, worker_properties
from sparkmirror.clusters.ports import HOST, ReservedPort

START_TIMEOUT_S: Final = 120.0
_TIMEOUT_S: Final = 60.0
_REBALANCING: Final = 409
_GONE: Final = 404
"""A connector to delete may be gone already, by another client or by a request that seemed to fail."""
_AGAIN_S: Final = 0.05
_POLL_S: Final = 0.1
_PROC: Final = Path("/proc")


class Worker:
    """A running worker. Every answer's status is counted, those that ask to come again too."""

    def __init__(self, url: str, process: SideProcess) -> None:
        self.url = url
        self.process = process
        self.codes: Counter[int] = Counter()
        self._http = urllib3.PoolManager(timeout=_TIMEOUT_S, retries=False)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON, if any. Raises BenchError when nothing answers."""
        encoded = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            answer = self._http.request(method, f"{self.url}{path}", body=encoded, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise BenchError(f"{method} {path}: {error}") from error
        is_json = answer.headers.get("Content-Type") == "application/json"  # Java's aren't while it starts
        return answer.status, json.loads(answer.data) if is_json else None

    def change(self, method: str, path: str, body: object = None) -> None:
        """Again as long as the group is rebalancing, as Java's workers say after each change."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            code, content = self.ask(method, path, body)
            self.codes[code] += 1
            if code < 300 or (method, code) == ("DELETE", _GONE):
                return
            if code != _REBALANCING or time.monotonic() > deadline:
                raise BenchError(f"{method} {path}: {code} {content}")
            time.sleep(_AGAIN_S)

    def await_true(self, condition: Callable[[], bool], what: str, timeout_s: float = _TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self.process.has_ended() or time.monotonic() > deadline:
                raise BenchError(f"{what}: not within {timeout_s:.0f} s: {self.process.log_tail()}")
            time.sleep(_POLL_S)

    def is_up(self) -> bool:
        with suppress(BenchError):
            return self.ask("GET", "/connectors")[0] == 200
        return False

    def running(self, names: Collection[str]) -> int | None:
        """Count their tasks; None unless connectors and tasks are all RUNNING."""
        _, content = self.ask("GET", "/connectors?expand=status")
        statuses = [of["status"] for name, of in content.items() if name in names]
        parts = [part for status in statuses for part in (status["connector"], *status["tasks"])]
        if len(statuses) < len(names) or any(part["state"] != "RUNNING" for part in parts):
            return None
        return len(parts) - len(names)

    def cpu_s(self) -> float:
        self.process.observe()
        return self.process.tree.cpu_s()

    def holdings(self) -> Holdings:
        """Return the holdings of the process that serves the API, which is the command itself."""
        self.process.observe()
        pid = self.process.tree.first_child()
        status = (_PROC / str(pid) / "status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in status)
        opened = list(_opened(pid))
        return Holdings(
            rss_mb=int(fields["VmRSS"].split()[0]) / 1024,
            threads=int(fields["Threads"]),
            descriptors=len(opened),
            sockets=sum(each.startswith("socket:") for each in opened),
        )


def _opened(pid: int) -> Iterator[str]:
    """Yield what each descriptor of a process is open on."""
    for descriptor in (_PROC / str(pid) / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield str(descriptor.readlink())


@contextmanager
def running_worker(bed: Bed, side: Side, more: Mapping[str, str]) -> Iterator[Worker]:
    """One node on the target cluster, when it answers; stopped after the block, and its topics deleted."""
    port = ReservedPort()
    url = f"http://{HOST}:{port.number}"
    file = bed.folder / f"worker-{side.value}.properties"
    file.write_text(worker_properties(bed.target.bootstrap, url, f"bench-{side.value}", more))
    command = java_worker_command(bed.java, bed.mm2_jars, file) if side.is_java else our_worker_command(file)
    try:
        with SideProcess.start(command, file.with_suffix(".log")) as process:
            worker = Worker(url, process)
            worker.await_true(worker.is_up, "the worker does not answer", START_TIMEOUT_S)
            yield worker
            process.stop()
    finally:
        bed.clean()
        port.release()
