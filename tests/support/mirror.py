"""Runs `sparkmirror run` in a process of its own."""

import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import javaproperties
import psutil

from sparkmirror.clusters.processes import Process, start_process
from tests.support.any_cluster import AnyCluster
from tests.support.waiting import await_value, patience

COMMAND = str(Path(sys.executable).with_name("sparkmirror"))
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
"""Stopping takes a second or two; a busy machine may need longer."""
_MARK = "SPARKMIRROR_TEST_MIRROR"
_GONE_WITHIN_S = 5.0
"""The time in which ended processes disappear on a busy machine."""

REPLICATION = {
    # Clusters have one broker.
    "replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "emit.heartbeats.enabled": "false",
}
"""Settings of every mirror in tests. Heartbeats are disabled by default."""


def one_way(
    source: AnyCluster, target: AnyCluster, topics: str, aliases: tuple[str, str] = ("A", "B"), /, **more: str
) -> dict[str, str]:
    """Return the properties of a flow of one task.

    An option in `more` is written with `_` for `.`, and with `__` for `-`.
    """
    here, there = aliases
    return {
        **REPLICATION,
        "clusters": f"{here}, {there}",
        f"{here}.bootstrap.servers": source.bootstrap_servers,
        f"{there}.bootstrap.servers": target.bootstrap_servers,
        f"{here}->{there}.enabled": "true",
        f"{here}->{there}.topics": topics,
        "heartbeats.replication.enabled": "false",
        "tasks.max": "1",
        **{name.replace("__", "-").replace("_", "."): value for name, value in more.items()},
    }


class Mirror:
    """An `mm2.properties` and the process that runs it, which can be restarted and ends with this process."""

    command = "run"

    def __init__(self, folder: Path, properties: Mapping[str, str], *arguments: str) -> None:
        folder.mkdir()
        self.log = folder / "mirror.log"
        self.spark_log = folder / "spark.log"
        self.file = folder / "mm2.properties"
        self.configure(properties)
        self._arguments = arguments
        self.environment: Mapping[str, str] = {}
        """Additional environment variables."""
        self._mark = f"{_MARK}={uuid4().hex}"
        self._process: Process | None = None

    def start(self) -> None:
        """An environment variable that every descendant inherits, also orphans."""
        run = [COMMAND, self.command, str(self.file), "--log-file", str(self.spark_log)]
        more = [f"{name}={value}" for name, value in self.environment.items()]
        step = ["env", self._mark, *more, *run, *self._arguments]
        self._process = start_process([step], self.log, outlives_us=False)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Write the file again, as an editor does."""
        self.file.write_text(javaproperties.dumps(dict(properties)), encoding="ascii")

    def await_log(self, text: str, timeout_s: float = START_TIMEOUT_S) -> str:
        """Wait for a line that contains the text or matches it as a regular expression; returns the first."""
        pattern = re.compile(f".*(?:{text}).*")

        def found() -> str | None:
            match = pattern.search(self.log_text())
            if match is None:
                assert self._running.is_alive(), self.log_text()
            return None if match is None else match[0]

        return await_value(found, timeout_s, lambda: f"no line with {text!r} in\n{self.log_text()}")

    def log_text(self) -> str:
        """Read the log of all runs."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def processes(self) -> list[psutil.Process]:
        """List the living processes that have the mark."""
        return [process for process in psutil.process_iter() if carries(process, self._mark)]

    def jvm(self) -> psutil.Process:
        (jvm,) = self.jvms()
        return jvm

    def jvms(self) -> list[psutil.Process]:
        return [process for process in self.processes() if _is_java(process)]

    def workers(self) -> list[psutil.Process]:
        """List the Python workers, children of Spark's Python daemon."""
        return [child for child in self.jvm().children(recursive=True) if child.ppid() != self.jvm().pid]

    def send(self, number: signal.Signals) -> None:
        psutil.Process(self._running.pid).send_signal(number)

    def press_ctrl_c(self) -> None:
        """Send SIGINT to every process of the foreground group, as a terminal does."""
        os.killpg(self._running.pid, signal.SIGINT)

    @property
    def has_ended(self) -> bool:
        return not self._running.is_alive()

    def wait(self, timeout_s: float) -> int:
        """Wait for the end; returns the exit code."""
        limit_s = timeout_s * patience()
        assert self._running.wait(limit_s), f"still running after {limit_s:.0f} s:\n{self.log_text()}"
        code = self._running.exit_code
        self._running.kill()  # the guard process
        assert code is not None
        return code

    def stop(self) -> None:
        """Stop it in order, which must leave no process."""
        self.send(signal.SIGTERM)
        self.assert_stopped()

    def assert_stopped(self) -> None:
        assert self.wait(STOP_TIMEOUT_S) == 0, self.log_text()
        self.assert_nothing_left(_GONE_WITHIN_S)

    def kill(self) -> None:
        """Kill it with all that it has started, as an outage of the machine does."""
        for process in self.processes():
            process.send_signal(signal.SIGKILL)
        self.wait(timeout_s=10)
        self.assert_nothing_left(10)

    def assert_nothing_left(self, within_s: float) -> None:
        _, left = psutil.wait_procs(self.processes(), timeout=within_s * patience())
        assert not left

    def close(self) -> None:
        """Kill it if it still runs."""
        if self._process is not None:
            self._process.kill()
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    @property
    def _running(self) -> Process:
        assert self._process is not None, "not started"
        return self._process


@contextmanager
def running_mirror(folder: Path, properties: Mapping[str, str], *arguments: str) -> Iterator[Mirror]:
    """Start a mirror; it is killed at the end of the block if it still runs."""
    mirror = Mirror(folder, {**REPLICATION, **properties}, *arguments)
    try:
        mirror.start()
        yield mirror
    finally:
        mirror.close()


def _is_java(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "java")
    except psutil.Error:
        return False


def carries(process: psutil.Process, mark: str) -> bool:
    """Whether the process lives and has this `NAME=value` in its environment."""
    name, _, value = mark.partition("=")
    try:
        return process.status() != psutil.STATUS_ZOMBIE and bool(process.environ().get(name) == value)
    except psutil.Error:
        return False
