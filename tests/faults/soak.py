"""Runs `make soak`: injects faults at random moments under load, for as long as asked.

`python -m tests.faults.soak --seed 7 --minutes 30`. Exit code 0 when every record is on the target once and
in order and no word about the mirror was wrong, 1 when not, or when the mirror does not recover.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.faults.drill import RATE, Drill
from tests.faults.faults import FAULTS
from tests.faults.schedule import Round, rounds
from tests.faults.testbed import clusters, open_testbed
from tests.faults.verdict import Verdict

_CHECK_S: Final = 600.0
"""The interval of comparisons while faults are injected."""

_OF_NUMBERED: Final = ("elect-unclean-leader", "change-configs")
"""These need topics that are not there where offsets are preserved."""

_began = time.monotonic()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="sparkmirror-soak-"))
    command = f"make soak ARGS='--seed {options.seed} --minutes {options.minutes:g}"
    command += " --preserve" if options.preserve else ""
    command += " --transforms" if options.transforms else ""
    command += f" --faults {' '.join(options.faults)}'" if options.faults else "'"
    log(f"seed {options.seed}, {options.minutes:g} minutes, {options.rate} records/s; {folder}")
    try:
        is_exact = _soak(options, folder)
    except KeyboardInterrupt:
        log(f"interrupted; files are in {folder}")
        return 130
    except Exception as error:  # noqa: BLE001 - whatever it is: the command that repeats the run must be the last line
        log(f"FAILED: {type(error).__name__}: {error}")
        is_exact = False
    if is_exact:
        shutil.rmtree(folder)
        return 0
    log(f"FAILED with seed {options.seed}. Logs and data are in {folder}. To repeat the run:\n  {command}")
    return 1


def log(text: str) -> None:
    _write(f"{time.monotonic() - _began:7.1f}  {text}")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _soak(options: argparse.Namespace, folder: Path) -> bool:
    with (
        clusters(folder) as (source, target),
        open_testbed(
            source,
            target,
            folder,
            with_numbered=not options.preserve,
            preserves=options.preserve,
            transforms=options.transforms,
        ) as testbed,
    ):
        drill = Drill(testbed, log)
        try:
            verdict = _rounds(drill, options)
        except BaseException:
            # The faults injected until then are what there is to analyse.
            _say_injected(drill.injected)
            raise
        if verdict is None:
            log("the load has ended; comparing all records")
            verdict = drill.finish()
        figures = drill.figures(verdict)
    log(str(verdict))
    _write(figures)
    never = sorted(set(_faults(options)) - drill.injected.keys())
    _write(f"{'never injected':<30} {', '.join(never) or 'none':>12}")
    return verdict.is_exact


def _rounds(drill: Drill, options: argparse.Namespace) -> Verdict | None:
    """Until the time is over, or something differs: then what."""
    schedule = rounds(options.seed, _faults(options))
    with drill.load(options.rate) as watch:
        log("records flow")
        ends_at = time.monotonic() + 60 * options.minutes
        while True:
            drill.inject(_until(min(ends_at, time.monotonic() + _CHECK_S), schedule), watch)
            if time.monotonic() >= ends_at:
                return None
            verdict = drill.verify_so_far()
            log(str(verdict))
            if not verdict.has_same_records:
                return verdict


def _faults(options: argparse.Namespace) -> Collection[str]:
    chosen: Collection[str] = options.faults or FAULTS
    return [name for name in chosen if not (options.preserve and name in _OF_NUMBERED)]


def _until(moment: float, schedule: Iterator[Round]) -> Iterator[Round]:
    while time.monotonic() < moment:
        yield next(schedule)


def _say_injected(injected: Mapping[str, int]) -> None:
    for name, count in sorted(injected.items()):
        _write(f"  {name:<28} {count:>4}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10_000), help="repeats the schedule of an earlier run"
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long faults are injected (30)")
    parser.add_argument("--rate", type=int, default=RATE, help=f"records per second ({RATE})")
    parser.add_argument(
        "--faults", nargs="+", choices=sorted(FAULTS), default=(), metavar="NAME", help=", ".join(FAULTS)
    )
    parser.add_argument(
        "--preserve",
        action="store_true",
        help="every record must have the offset of its source, between transactions that leave gaps",
    )
    parser.add_argument(
        "--transforms",
        action="store_true",
        help="a function and a filter leave records out, which the comparison must know",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
