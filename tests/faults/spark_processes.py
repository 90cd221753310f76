"""Finds the processes of a mirror by kind: executors, Python daemons and workers."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil

from tests.support.mirror import Mirror

_EXECUTOR = "CoarseGrainedExecutorBackend"
_DAEMON = "sparkmirror.copy.task.worker_daemon"


class SparkProcesses(NamedTuple):
    """Each kind by age; the oldest workers may belong to a copy job that has ended."""

    executors: Sequence[psutil.Process]
    daemons: Sequence[psutil.Process]
    workers: Sequence[psutil.Process]

    @classmethod
    def of(cls, mirror: Mirror) -> "SparkProcesses":
        executors: list[psutil.Process] = []
        daemons: list[psutil.Process] = []
        workers: list[psutil.Process] = []
        for process in mirror.processes():
            try:
                process.create_time()  # remembered, for the order
                words = process.cmdline()
                if any(_EXECUTOR in word for word in words):
                    executors.append(process)
                elif _DAEMON in words:
                    # Workers are forks of the daemon, which is a child of a JVM; some outlive the daemon.
                    is_daemon = process.parent().name() == "java"
                    (daemons if is_daemon else workers).append(process)
            except (psutil.Error, AttributeError):  # it ended meanwhile, or its parent did
                continue
        return cls(*(sorted(kind, key=_age) for kind in (executors, daemons, workers)))


def kill_all(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _age(process: psutil.Process) -> tuple[float, int]:
    return process.create_time(), process.pid
