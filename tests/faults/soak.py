"""`make soak`: faults at random moments under load, for as long as somebody wants.

`python -m tests.faults.soak --seed 7 --minutes 30`. Exit code 0 when every record is on the target once and
in order, 1 when not, or when the mirror does not recover.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.faults.deals import Deal, deals
from tests.faults.drill import RATE, Drill
from tests.faults.faults import FAULTS
from tests.faults.stage import clusters, open_stage
from tests.faults.verdict import Verdict

_ROUND_S: Final = 600.0
"""How often what has been mirrored is compared while faults go on."""

_began = time.monotonic()


def main(arguments: Sequence[str] | None = None) -> int:
    told = _parser().parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="sparkmirror-soak-"))
    again = f"make soak ARGS='--seed {told.seed} --minutes {told.minutes:g}"
    again += f" --faults {' '.join(told.faults)}'" if told.faults else "'"
    say(f"seed {told.seed}, {told.minutes:g} minutes, {told.rate} records/s; {folder}")
    try:
        is_exact = _soak(told, folder)
    except KeyboardInterrupt:
        say(f"interrupted; files are in {folder}")
        return 130
    except Exception as error:  # noqa: BLE001 - whatever it is: how to have it again must be the last word
        say(f"FAILED: {type(error).__name__}: {error}")
        is_exact = False
    if is_exact:
        shutil.rmtree(folder)
        return 0
    say(f"FAILED with seed {told.seed}. Logs and data are in {folder}. To deal the same again:\n  {again}")
    return 1


def say(text: str) -> None:
    _write(f"{time.monotonic() - _began:7.1f}  {text}")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _soak(told: argparse.Namespace, folder: Path) -> bool:
    with clusters(folder) as (source, target), open_stage(source, target, folder) as stage:
        drill = Drill(stage, say)
        try:
            verdict = _rounds(drill, told)
        except BaseException:
            # What was dealt until then is what there is to look at.
            _say_injected(drill.injected)
            raise
        if verdict is None:
            say("the load has ended; everything is compared")
            verdict = drill.finish()
        figures = drill.figures(verdict)
    say(str(verdict))
    _write(figures)
    never = sorted(set(told.faults or FAULTS) - drill.injected.keys())
    _write(f"{'never dealt':<30} {', '.join(never) or 'none':>12}")
    return verdict.is_exact


def _rounds(drill: Drill, told: argparse.Namespace) -> Verdict | None:
    """Until the time is over, or something differs: then what."""
    dealt = deals(told.seed, told.faults)
    with drill.load(told.rate) as watch:
        say("records flow")
        ends_at = time.monotonic() + 60 * told.minutes
        while True:
            drill.deal(_until(min(ends_at, time.monotonic() + _ROUND_S), dealt), watch)
            if time.monotonic() >= ends_at:
                return None
            verdict = drill.verify_so_far()
            say(str(verdict))
            if not verdict.is_exact:
                return verdict


def _until(moment: float, dealt: Iterator[Deal]) -> Iterator[Deal]:
    while time.monotonic() < moment:
        yield next(dealt)


def _say_injected(injected: Mapping[str, int]) -> None:
    for name, count in sorted(injected.items()):
        _write(f"  {name:<28} {count:>4}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="deal the same again")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long faults are dealt (30)")
    parser.add_argument("--rate", type=int, default=RATE, help=f"records per second ({RATE})")
    parser.add_argument(
        "--faults", nargs="+", choices=sorted(FAULTS), default=(), metavar="NAME", help=", ".join(FAULTS)
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
