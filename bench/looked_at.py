"""Measures what it costs a mirror that pages are open: throughput and latency with 20 of them, and with none.

`python -m bench.looked_at [--only PART ...] [--pairs N]`. Runs of different minutes differ by more than the
pages cost: so runs are short, alternate, and only the two of a pair are compared.
"""

import argparse
import asyncio
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

from bench import latency, throughput
from bench.background import in_background
from bench.bed import Bed, opened
from bench.errors import BenchError
from bench.latency import Timing
from bench.pages import Streams
from bench.plan import PAIRED
from bench.sides import TARGET_ALIAS, Side
from bench.throughput import Job
from bench.versions import Figures, compare, write
from bench.workloads import LATENCY
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.ui.page_looks import PAGES, query

_PAGES_OPEN: Final = 20
_TIMING: Final = Timing(warm_up_s=5.0, seconds=20.0)
_SETTLE_S: Final = 0.5
_SHOWN: Final = tuple(page for page in PAGES if page not in {"topic", "group"})
"""Pages that need no more than a flow."""
COPIED: Final = {workload.name: workload for workload in PAIRED}


class _Pages(NamedTuple):
    name: str
    are_open: bool


_KINDS: Final = _Pages("closed", are_open=False), _Pages("open", are_open=True)

Measure = Callable[[str, Sequence[str]], Figures]
"""Figures of a mirror under a new alias, started with options."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.looked_at", description=__doc__)
    parts = (*COPIED, LATENCY)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PART")
    parser.add_argument("--pairs", type=int, default=10, help="of runs, for each part (10)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="sparkmirror-bench-") as folder,
        opened(Path(folder), 2, print) as bed,
    ):
        for part in options.only:
            if part == LATENCY:
                measure = partial(_measured, partial(_latency_run, bed))
                compare(part, _KINDS, options.pairs, measure)
            else:
                data = write(bed, COPIED[part])
                copy_run = partial(_copy_run, bed, data.topic, data.records)
                compare(part, _KINDS, options.pairs, partial(_measured, copy_run))
                bed.drop_data()


def _measured(measure: Measure, pages: _Pages, alias: str) -> Figures:
    port = ReservedPort()
    address = f"{HOST}:{port.number}"
    watching = in_background(partial(_look, f"http://{address}", alias)) if pages.are_open else nullcontext()
    try:
        with watching:
            return measure(alias, ("--http", address))
    finally:
        port.release()


def _look(url: str, alias: str, enough: threading.Event) -> None:
    """Keep pages of the mirror open, from its start to its end."""
    asyncio.run(_open(url, f"{alias}->{TARGET_ALIAS}", enough))


async def _open(url: str, flow: str, enough: threading.Event) -> None:
    paths, received = [f"{page}?{query(flow)}" for page in islice(cycle(_SHOWN), _PAGES_OPEN)], 0
    while not enough.is_set():
        streams = Streams(url)
        with suppress(OSError, RuntimeError):  # while the mirror starts and stops
            await streams.open(paths, _SETTLE_S)
            await asyncio.to_thread(enough.wait)
        await streams.close()
        received += streams.bytes
    if not received:
        raise BenchError("no page was received")


def _copy_run(bed: Bed, topic: str, records: int, alias: str, options: Sequence[str]) -> Figures:
    run = throughput.measure(bed, Side.OURS, Job(topic, 1, alias, topic, records, options=options))
    window = run.copying
    return {
        "records/s": window.records_per_s,
        "CPU s per million records": window.cpu_s_per_million,
    }


def _latency_run(bed: Bed, alias: str, options: Sequence[str]) -> Figures:
    job = Job(LATENCY, 1, alias, latency.TOPIC, 0, options=options)
    found = latency.through(bed, Side.OURS, job, _TIMING)
    return {"p50 ms": found.p50_ms, "p99 ms": found.p99_ms, "p99.9 ms": found.p999_ms}


if __name__ == "__main__":
    main()
