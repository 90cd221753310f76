"""One copy task without Spark, of whichever sparkmirror Python finds first; `bench.versions` starts it.

It uses only what the versions have in common. For each mark, a number of records that are acknowledged in
all, it prints a line of JSON when that is reached; then it copies until its input ends, and stops in order.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from sparkmirror.copy.copy_loop import CopyLoop
from sparkmirror.copy.copy_plan import (  # type: ignore[attr-defined]  # all versions have it there
    CopyPartition,
    TaskPlan,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.mirror.copy_jobs import Announced, task_plans
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file

_POLL_S: Final = 0.02
_TIMEOUT_S: Final = 600.0


class Mark(NamedTuple):
    """So many records were acknowledged `at_s` after the task's start, which took so much CPU until then."""

    records: int
    at_s: float
    cpu_s: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--topics", nargs="+", required=True)
    parser.add_argument("--partitions", type=int, required=True, help="of each topic")
    parser.add_argument("--marks", type=int, nargs="*", default=[])
    parser.add_argument("--preserved", action="store_true", help="of a version that can preserve offsets")
    options = parser.parse_args(arguments)
    added = {"preserves_offsets": True} if options.preserved else {}
    loop = CopyLoop(_plan(options.file, options.topics, options.partitions, added))
    thread = threading.Thread(target=loop.run, daemon=True)
    try:
        for mark in _marks(loop, thread, options.marks):
            print(json.dumps(mark), flush=True)
        sys.stdin.read()
    finally:
        loop.stop()
        thread.join()


def _plan(file: Path, topics: Sequence[str], partitions: int, added: Mapping[str, Any]) -> TaskPlan:
    """Plan a task, with `added` for each partition, without offset syncs: nothing creates their topic."""
    (flow,) = (flow for flow in read_mirror_maker_file(file).flows if flow.source is not None)
    assert flow.source is not None
    copied = [
        CopyPartition(TopicPartition(topic, number), f"{flow.flow.source}.{topic}", **added)
        for topic in topics
        for number in range(partitions)
    ]
    (plan,) = task_plans(flow, flow.source, Announced(0, 0), copied, slots=1)
    return replace(plan, offset_syncs=None)


def _marks(loop: CopyLoop, thread: threading.Thread, wanted: Sequence[int]) -> Iterator[Mark]:
    """Also starts the task."""
    parts = getattr(loop, "parts", None) or loop.pipeline  # type: ignore[attr-defined]  # the name before
    began_s, before_s = time.monotonic(), time.process_time()
    thread.start()
    for records in wanted:
        while (copied := sum(copy.records for copy in parts.copies)) < records:
            if not thread.is_alive() or time.monotonic() - began_s > _TIMEOUT_S:
                sys.exit(f"{copied} of {records} records were copied within {_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)
        yield Mark(copied, time.monotonic() - began_s, time.process_time() - before_s)


if __name__ == "__main__":
    main()
