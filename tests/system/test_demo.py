"""`sparkmirror demo`, with a short duration."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests.support.mirror import carries
from tests.support.waiting import await_value, patience

COMMAND = (str(Path(sys.executable).with_name("sparkmirror")), "demo", "--rate", "200")
SHORT, UNTIL_INTERRUPTED = 3, 600
"""Durations of the demo in seconds."""


class Demo:
    """The demo's process and all that it started, which inherit an environment variable as a mark."""

    def __init__(self, out: Path, process: subprocess.Popen[bytes], mark: str) -> None:
        self.out = out
        self.process = process
        self._mark = mark

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if carries(process, self._mark)]


@contextmanager
def demo(out: Path, duration_s: int) -> Iterator[Demo]:
    name, value = "SPARKMIRROR_TEST_DEMO", uuid4().hex
    environ = {**os.environ, name: value}
    with (
        out.open("wb") as file,
        subprocess.Popen(
            [*COMMAND, "--duration", str(duration_s)], stdout=file, stderr=subprocess.STDOUT, env=environ
        ) as process,
    ):
        try:
            yield Demo(out, process, f"{name}={value}")
        finally:
            # A killed demo ends everything that it has started.
            process.kill()


def await_text(running: Demo, text: str, timeout_s: float) -> None:
    def is_there() -> bool:
        found = text in running.out.read_text()
        assert found or running.process.poll() is None, running.out.read_text()
        return found

    await_value(is_there, timeout_s, running.out.read_text)


def test_demo_mirrors_every_record_and_exits_with_0(tmp_path: Path) -> None:
    with demo(tmp_path / "out", SHORT) as running:
        code = running.process.wait(timeout=180 * patience())

    assert code == 0, running.out.read_text()
    assert "are the same on both clusters" in running.out.read_text()
    await_value(lambda: not running.processes(), 5, lambda: f"left: {running.processes()}")


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, "live: "), (signal.SIGTERM, "Running the mirror: ")],
    ids=["SIGINT while it mirrors", "SIGTERM while the mirror starts"],
)
def test_interrupted_demo_leaves_no_process(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    with demo(tmp_path / "out", UNTIL_INTERRUPTED) as running:
        await_text(running, moment, timeout_s=120)
        assert len(running.processes()) >= 4  # the demo, two brokers, the mirror
        running.process.send_signal(number)
        code = running.process.wait(timeout=60 * patience())

    assert code == 130, running.out.read_text()
    await_value(lambda: not running.processes(), 5, lambda: f"left: {running.processes()}")
