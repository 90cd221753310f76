"""Measures what transforms add to the latency of a mirror: 1,000 records a second, with and without them.

`python -m bench.transform_latency [--pairs N] [--only WORKLOAD ...]`.
"""

import argparse
import signal
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import latency
from bench.bed import Bed, opened
from bench.latency import Timing
from bench.sides import Side
from bench.throughput import Job
from bench.versions import Figures, compare
from bench.workloads import LATENCY, TRANSFORMED

_TIMING = Timing(warm_up_s=5.0, seconds=20.0)


class _Mirror(NamedTuple):
    name: str
    settings: Mapping[str, str]


def main() -> None:
    names = [workload.name for workload in TRANSFORMED]
    parser = argparse.ArgumentParser(prog="python -m bench.transform_latency", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="WORKLOAD")
    parser.add_argument("--pairs", type=int, default=4, help="of runs, for each (4)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="sparkmirror-bench-") as folder,
        opened(Path(folder), 2, print) as bed,
    ):
        for workload in TRANSFORMED:
            if workload.name in options.only:
                kinds = _Mirror("without", {}), _Mirror("with", dict(workload.settings))
                compare(f"{LATENCY}{workload.name}", kinds, options.pairs, partial(_measured, bed))


def _measured(bed: Bed, mirror: _Mirror, alias: str) -> Figures:
    job = Job(LATENCY, 1, alias, latency.TOPIC, 0, settings=mirror.settings)
    found = latency.through(bed, Side.OURS, job, _TIMING)
    return {"p50 ms": found.p50_ms, "p99 ms": found.p99_ms}


if __name__ == "__main__":
    main()
