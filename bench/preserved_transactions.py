"""Measures whether one task keeps up with many small transactions whose offsets are preserved.

`python -m bench.preserved_transactions [SECONDS [PER_SECOND]]`. Each transaction writes two records into one
of 20 partitions and leaves a gap of one offset, its marker. The producers are a process of their own.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.bed import Bed, opened
from bench.errors import BenchError
from bench.pairs import planned
from bench.workloads import DATA_PREFIX
from sparkmirror.copy.copy_loop import CopyLoop

_PARTITIONS: Final = 20
_SECONDS: Final = 30
_PER_SECOND: Final = 200
_CATCH_UP_S: Final = 120.0
_SETTINGS: Final = {"offsets.preserve": "true", "consumer.isolation.level": "read_committed"}
_TOPIC: Final = f"{DATA_PREFIX}transactions"


def _measure(bed: Bed, seconds: int, per_second: int) -> str:
    bed.source.topics.create(_TOPIC, _PARTITIONS)
    with planned(bed, _TOPIC, "transactions", _SETTINGS, _PARTITIONS) as plan:
        target = plan.partitions[0].target_topic
        loop = CopyLoop(plan)
        thread = threading.Thread(target=loop.run, daemon=True)
        thread.start()
        try:
            cpu_s, brokers_s = time.process_time(), bed.target.cpu_s()
            arguments = [bed.source.bootstrap, _TOPIC, *map(str, (_PARTITIONS, per_second, seconds))]
            writer = subprocess.Popen([sys.executable, "-m", "bench.transactional_source", *arguments])
            lags = []
            while writer.poll() is None:
                time.sleep(1.0)
                lags.append(_lag(bed, target))
            caught_up_s = _caught_up(bed, target)
            cpu_s, brokers_s = time.process_time() - cpu_s, bed.target.cpu_s() - brokers_s
        finally:
            loop.stop()
            thread.join()
    transactions = bed.source.topics.end_offsets(_TOPIC, _PARTITIONS) // 3
    return (
        f"{transactions:,} transactions in {seconds} s over {_PARTITIONS} partitions: {median(lags):,.0f} "
        f"offsets behind (median; at most {max(lags):,}), caught up {caught_up_s:.1f} s after the last; "
        f"{cpu_s * 1e3 / transactions:.1f} ms of the task's CPU and "
        f"{brokers_s * 1e3 / transactions:.1f} ms of the target's each"
    )


def _lag(bed: Bed, target: str) -> int:
    there = bed.target.topics.end_offsets(target, _PARTITIONS)
    return bed.source.topics.end_offsets(_TOPIC, _PARTITIONS) - there


def _caught_up(bed: Bed, target: str) -> float:
    began = time.monotonic()
    while _lag(bed, target) > 0:
        if time.monotonic() - began > _CATCH_UP_S:
            raise BenchError(f"still {_lag(bed, target)} offsets behind after {_CATCH_UP_S:.0f} s")
        time.sleep(0.05)
    return time.monotonic() - began


def main(arguments: Sequence[str]) -> int:
    seconds = int(arguments[0]) if arguments else _SECONDS
    per_second = int(arguments[1]) if len(arguments) > 1 else _PER_SECOND
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 1, print) as bed:
        sys.stdout.write(f"{_measure(bed, seconds, per_second)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
