"""The mirror as a user runs it: an `mm2.properties` and a child process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError

SOURCE: Final = "source"
TARGET: Final = "target"
STOP_TIMEOUT_S: Final = 10.0
_KILL_TIMEOUT_S: Final = 5.0
_SHOWN_LINES: Final = 15
_MAIN: Final = "from sparkmirror.cli.main import main; raise SystemExit(main())"


def mirror_properties(source_bootstrap: str, target_bootstrap: str, topics: Sequence[str]) -> str:
    """The text of an `mm2.properties` that mirrors the topics from one single-broker cluster to another."""
    return f"""\
# The same file that connect-mirror-maker.sh reads.
clusters = {SOURCE}, {TARGET}
{SOURCE}.bootstrap.servers = {source_bootstrap}
{TARGET}.bootstrap.servers = {target_bootstrap}

{SOURCE}->{TARGET}.enabled = true
{SOURCE}->{TARGET}.topics = {", ".join(topics)}
tasks.max = 2

# One broker per cluster holds one replica.
replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
config.storage.replication.factor = 1
status.storage.replication.factor = 1
"""


class MirrorProcess:
    """`sparkmirror run` in a session of its own, so that a Ctrl-C reaches it in order, through `stop()`."""

    def __init__(self, properties: Path, log: Path, spark_log: Path) -> None:
        self.log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-c", _MAIN, "run", str(properties), "--log-file", str(spark_log)],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=subprocess.STDOUT,
                cwd=properties.parent,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise, with the end of its log, if the mirror ended by itself."""
        code = self._process.poll()
        if code is not None:
            raise SparkmirrorError(f"the mirror ended by itself with exit code {code}:\n{self._last_lines()}")

    def stop(self) -> None:
        """End it in order, by force after 10 s; raise if it needed force or ended with an error."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise SparkmirrorError(f"the mirror did not stop within {STOP_TIMEOUT_S:.0f} s; killed") from None
        finally:
            self.kill()
        if code != 0:
            raise SparkmirrorError(f"the mirror stopped with exit code {code}:\n{self._last_lines()}")

    def close(self) -> None:
        """End it in order if it still runs; how it ended matters no more."""
        with suppress(SparkmirrorError):
            self.stop()

    def kill(self) -> None:
        """End it and all its children at once; does nothing when none is left."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait(_KILL_TIMEOUT_S)

    def _last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_SHOWN_LINES:])
