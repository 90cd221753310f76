"""The demo as a user starts it, short."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

COMMAND = (str(Path(sys.executable).with_name("sparkmirror")), "demo", "--duration", "5", "--rate", "200")


@contextmanager
def demo(out: Path) -> Iterator[subprocess.Popen[bytes]]:
    with out.open("wb") as file, subprocess.Popen(COMMAND, stdout=file, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            # Everything that the demo starts ends with it, even so.
            process.kill()


def await_text(out: Path, text: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while text not in out.read_text():
        assert time.monotonic() < deadline, out.read_text()
        time.sleep(0.1)


def test_every_record_arrives(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with demo(out) as process:
        code = process.wait(timeout=180)

    assert code == 0, out.read_text()
    assert "are the same on both clusters" in out.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    with demo(out) as process:
        await_text(out, "live: ", timeout_s=120)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        code = process.wait(timeout=30)

    assert code == 130, out.read_text()
    _, left = psutil.wait_procs(started, timeout=5)
    assert len(started) >= 3
    assert not left
