"""`python -m bench`: start both clusters, run every side alternately, show and save the numbers."""

import argparse
import json
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from bench.bed import BROKER_HEAP_MB, BROKER_SETTINGS, opened
from bench.goals import goals
from bench.machine import describe
from bench.page import Measurement, page
from bench.plan import Plan, plan_from
from bench.report import Table, tables
from bench.results import Results
from bench.runner import Runner
from bench.sides import Side
from bench.workloads import NAMES
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.java.jars import KAFKA_VERSION

DOCUMENT = Path(__file__).parent / "RESULTS.md"
_BATCH_BYTES = 128 << 10
_INTERRUPTED = 130


def options_from(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="WORKLOAD", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--sides", type=_sides, help=f"comma-separated, of {', '.join(side.value for side in Side)}"
    )
    parser.add_argument("--runs", type=int, help="of each side on each workload (3)")
    parser.add_argument(
        "--records", type=int, help="of each workload for the fast sides; MM2's share in proportion"
    )
    parser.add_argument("--tasks-max", type=int, default=2, help="of both mirrors (2)")
    parser.add_argument(
        "--batch-bytes", type=int, default=_BATCH_BYTES, help=f"of source batches ({_BATCH_BYTES})"
    )
    parser.add_argument("--quick", action="store_true", help="one short run of each")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every run there")
    parser.add_argument(
        "--document", type=Path, help=f"write the page there (a complete run: bench/{DOCUMENT.name})"
    )
    return parser.parse_args(arguments)


def _sides(text: str) -> tuple[Side, ...]:
    return tuple(Side(name.strip()) for name in text.split(","))


def main(arguments: Sequence[str]) -> int:
    """0 when all was measured, 1 when a run failed, 2 when the clusters did not start, 130 on Ctrl-C."""
    options, console, results = options_from(arguments), Console(), Results()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plan = plan_from(options)
    began = datetime.now(UTC)
    try:
        measurement = _measure(plan, results, console, shlex.join(["python", "-m", "bench", *arguments]))
    except KeyboardInterrupt:
        console.print("Interrupted; what was measured so far:")
        _draw(console, tables(results))
        return _INTERRUPTED
    except SparkmirrorError as error:
        console.print(f"The clusters did not start: {error}", style="red")
        return 2
    _draw(console, tables(results))
    _save(options, measurement, results, console)
    console.print(f"Took {(datetime.now(UTC) - began).total_seconds() / 60:.0f} minutes.")
    return 1 if results.failures else 0


def _measure(plan: Plan, results: Results, console: Console, command: str) -> Measurement:
    def say(text: str) -> None:
        console.print(f"{datetime.now(UTC):%H:%M:%S} {text}", highlight=False, markup=False, soft_wrap=True)

    with (
        tempfile.TemporaryDirectory(prefix="sparkmirror-bench-") as folder,
        opened(Path(folder), plan.tasks_max, say) as bed,
    ):
        measurement = Measurement(
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            command=command,
            machine=describe(bed.java, KAFKA_VERSION),
            plan=plan,
            broker_heap_mb=BROKER_HEAP_MB,
            broker_settings=BROKER_SETTINGS,
        )
        Runner(bed, plan, results, say).run()
    return measurement


def _draw(console: Console, drawn: Sequence[Table]) -> None:
    for table in drawn:
        grid = RichTable(title=table.title, title_justify="left")
        for index, column in enumerate(table.columns):
            grid.add_column(column, justify="right" if index else "left")
        for row in table.rows:
            grid.add_row(*row)
        console.print(grid)


def _save(options: argparse.Namespace, measurement: Measurement, results: Results, console: Console) -> None:
    if options.json:
        options.json.write_text(as_json(results, measurement))
        console.print(f"Every run: {options.json}")
    document = options.document or (DOCUMENT if measurement.plan.is_complete else None)
    if document:
        document.write_text(page(results, measurement))
        console.print(f"Page: {document}")


def as_json(results: Results, measurement: Measurement) -> str:
    """Everything, sides by their names."""
    content = {
        "occasion": asdict(measurement),
        "results": asdict(results),
        "goals": [asdict(goal) for goal in goals(results)],
    }
    return json.dumps(content, indent=1, default=_plain) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"not JSON: {value!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
