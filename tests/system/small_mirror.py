"""A mirror of at most one topic with two workers, whose process tests end in one way or another."""

import psutil

from tests.support.mirror import START_TIMEOUT_S, Mirror
from tests.support.waiting import await_value
from tests.system.dual_run import Sides


def topic(alias: str) -> str:
    return f"life.{alias}"


def properties(sides: Sides, alias: str, topics: str) -> dict[str, str]:
    return {
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": topics,
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
    }


def await_workers(mirror: Mirror) -> list[psutil.Process]:
    def two_workers() -> list[psutil.Process] | None:
        workers = [worker for worker in mirror.workers() if worker.is_running()]
        return workers if len(workers) == 2 else None

    return await_value(two_workers, START_TIMEOUT_S, lambda: f"there are not two workers: {mirror.workers()}")
