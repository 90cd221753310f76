"""Explores the model of the copy protocol.

`python -m tests.model --walks 100000 --seed 1` walks at random; each seed is the beginning of several walks.
With `--states 1000000` it goes through every scope breadth first, and with `--mutants` it counts the walks
that it takes to catch each mutant.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.model.copy_protocol import CopyProtocol
from tests.model.explore import Explored, breadth_first
from tests.model.mutants import MUTANTS
from tests.model.replay import shortened
from tests.model.rules import Rules
from tests.model.scenes import ENDS, SCOPES, walks_from, walks_to_catch

_CHUNK: Final = 100
_PROGRESS_S: Final = 30.0
_ENDS_EVERY: Final = 50


class Walked(NamedTuple):
    """The seeds from `first` up to, not including, `end`, and the violations of each that has one."""

    first: int
    end: int
    found: list[tuple[int, str]]


def main() -> int:
    arguments = _parser().parse_args()
    begin = time.monotonic()
    with multiprocessing.Pool(arguments.jobs) as pool:
        if arguments.states:
            work = [(name, arguments.states) for name in SCOPES]
            is_well = _report_scopes(pool.imap(_explored, work))
        elif arguments.mutants:
            work_of_mutants = [(name, arguments.walks, arguments.seed) for name in MUTANTS]
            is_well = _report_mutants(pool.imap(_caught, work_of_mutants))
        else:
            first, end = arguments.seed, arguments.seed - (-arguments.walks // ENDS)
            work_of_walks = [(seed, min(seed + _CHUNK, end)) for seed in range(first, end, _CHUNK)]
            is_well = _report_walks(pool.imap_unordered(_walked, work_of_walks))
    _print(f"{time.monotonic() - begin:.0f} s")
    return 0 if is_well else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--walks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument(
        "--states", type=int, default=0, help="explore every scope breadth first, up to so many"
    )
    parser.add_argument("--mutants", action="store_true", help="by which walk each mutant is caught")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="all cores unless given")
    return parser


def _explored(work: tuple[str, int]) -> tuple[str, Explored]:
    name, states = work
    scene = SCOPES[name]
    protocol = CopyProtocol(setting=scene.setting)
    return name, breadth_first(protocol, scene.start, states_max=states, ends_every=_ENDS_EVERY)


def _walked(seeds: tuple[int, int]) -> Walked:
    found = []
    for seed in range(*seeds):
        protocol, violation = walks_from(seed, Rules())
        if violation is not None:
            found.append((seed, str(shortened(protocol, violation))))
    return Walked(seeds[0], seeds[1], found)


def _caught(work: tuple[str, int, int]) -> tuple[str, int | None]:
    name, walks, seed = work
    return name, walks_to_catch(MUTANTS[name], seed, walks)


def _report_scopes(results: Iterable[tuple[str, Explored]]) -> bool:
    is_well = True
    for name, explored in results:
        extent = "all" if explored.is_complete else "the first"
        _print(f"{name}: {extent} {explored.states} states, {explored.depth} steps deep")
        if explored.violation is not None:
            is_well = False
            _print(str(explored.violation))
    return is_well


def _report_mutants(results: Iterable[tuple[str, int | None]]) -> bool:
    is_well = True
    for name, walks in results:
        is_well = is_well and walks is not None
        _print(f"{name}: " + ("not caught" if walks is None else f"caught by walk {walks}"))
    return is_well


def _report_walks(results: Iterable[Walked]) -> bool:
    """Each violation at once, and now and then how far it is."""
    seeds = violations = 0
    told_s = time.monotonic()
    for walked in results:
        seeds += walked.end - walked.first
        violations += len(walked.found)
        for seed, text in walked.found:
            _print(f"seed {seed}: {text}")
        if time.monotonic() > told_s + _PROGRESS_S:
            told_s = time.monotonic()
            _print(f"{seeds * ENDS:,} walks so far, {violations} violations")
    _print(f"{seeds * ENDS:,} walks of {seeds:,} seeds, {violations} violations")
    return not violations


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
