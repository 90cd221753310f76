"""Runs the mirror as a user does: with an `mm2.properties`, in a child process."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sparkmirror.clusters.processes import start_process
from sparkmirror.domain.errors import SparkmirrorError

SOURCE: Final = "source"
TARGET: Final = "target"
STOP_TIMEOUT_S: Final = 10.0
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
    """`sparkmirror run` in a session of its own, which a Ctrl-C does not reach. It never outlives us."""

    def __init__(self, properties: Path, log: Path, spark_log: Path) -> None:
        self.log = log
        run = [sys.executable, "-c", _MAIN, "run", str(properties), "--log-file", str(spark_log)]
        self._process = start_process([["cd", str(properties.parent)], run], log, outlives_us=False)

    def check(self) -> None:
        """Raise, with the end of its log, if the mirror ended by itself."""
        if not self._process.is_alive():
            raise SparkmirrorError(f"the mirror ended by itself, {self._ending()}")

    def stop(self) -> None:
        """End it in order, by force after 10 s; raise if it needed force or ended with an error."""
        if not self._process.stop(STOP_TIMEOUT_S):
            raise SparkmirrorError(f"the mirror did not stop within {STOP_TIMEOUT_S:.0f} s and was killed")
        if self._process.exit_code != 0:
            raise SparkmirrorError(f"the mirror stopped, {self._ending()}")

    def close(self) -> None:
        """End it if it still runs; its exit code is ignored."""
        self._process.stop(STOP_TIMEOUT_S)

    def _ending(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        return "\n".join([f"exit code {self._process.exit_code}; {self.log} ends with", *lines])
