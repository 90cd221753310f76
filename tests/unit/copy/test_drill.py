"""Copy tasks against clusters in memory, with faults from seeds; see `tests/memory/drill`."""

import os
import random
import signal
import subprocess
import sys
from typing import Final

import psutil
import pytest

from tests.memory.drill.__main__ import report
from tests.memory.drill.run import Drill, Result
from tests.memory.drill.shapes import Scenario, scenario_of, shape_of
from tests.support.waiting import await_value, patience

SEEDS: Final = range(1, 61)
COMMAND: Final = [sys.executable, "-m", "tests.memory.drill"]
END_S: Final = 20.0


@pytest.mark.parametrize("seeds", [SEEDS[:20], SEEDS[20:]], ids=["first", "more"])
def test_runs_with_faults_end_with_every_record_once_and_in_order(seeds: range) -> None:
    """Runs have processes of their own, where sets have one order, so a seed that fails does so again."""
    succeed(seeds)


@pytest.mark.parametrize("seeds", [SEEDS[:10], SEEDS[10:20]], ids=["first", "more"])
def test_preserved_offsets_survive_faults(seeds: range) -> None:
    succeed(seeds, "--preserve")


@pytest.mark.parametrize("options", [("--transforms",), ("--transforms", "--preserve")], ids=" ".join)
@pytest.mark.parametrize("seeds", [SEEDS[:6], SEEDS[6:24]], ids=["first", "more"])
def test_transformed_records_survive_faults(seeds: range, options: tuple[str, ...]) -> None:
    """Records that a filter or a function leaves out are gaps, also where it leaves out others each time."""
    succeed(seeds, *options)


def succeed(seeds: range, *options: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [*COMMAND, "--seed", str(seeds.start), "--runs", str(len(seeds)), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{len(seeds)} runs, ")


def test_these_runs_have_all_scenarios() -> None:
    shapes = [(scenario_of(seed), shape_of(seed, random.Random(seed))) for seed in SEEDS]
    for scenario in Scenario:
        of_scenario = [shape for of, shape in shapes if of is scenario]
        assert {shape.is_transactional for shape in of_scenario} == {False, True}
        assert {shape.reads_committed for shape in of_scenario} == {False, True}
        assert {shape.is_compacted for shape in of_scenario} == {False, True}
    bad = {(shape.bad, shape.on_bad_batch) for of, shape in shapes if of is Scenario.BAD_BATCHES}
    assert len(bad) == 6


def test_a_seed_gives_the_same_run_again() -> None:
    first, other, again = (Drill(seed).run() for seed in (3, 4, 3))
    assert first == again
    assert first.faults != other.faults


def test_the_report_has_the_command_that_repeats_a_failed_run(capsys: pytest.CaptureFixture[str]) -> None:
    results = [Result(6, "", ["1.000 a"], 2.0), Result(7, "a record is lost", ["1.000 b", "2.000 c"], 3.0)]
    assert report(results) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 7: a record is lost"
    assert "python -m tests.memory.drill --runs 1 --seed 7 --log" in lines[3]
    assert lines[4].startswith("2 runs, 3 faults, 0 s, 1 failures")
    assert report(results[:1]) == 0


def runs(process: psutil.Process) -> bool:
    """Whether it has not ended. An orphan may stay a zombie where nobody asks for its exit code."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_an_interrupt_ends_all_processes() -> None:
    """Ctrl-C interrupts the whole group."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    drill = subprocess.Popen(
        [*COMMAND, "--runs", "100000", "--jobs", "2"], env=environment, start_new_session=True, text=True
    )
    try:
        await_value(lambda: len(psutil.Process(drill.pid).children()) == 2, END_S, lambda: "no processes")
        processes = psutil.Process(drill.pid).children()
        os.killpg(drill.pid, signal.SIGINT)
        assert drill.wait(END_S * patience()) == 130
        await_value(lambda: not any(map(runs, processes)), END_S, lambda: f"{processes} run")
    finally:
        if drill.poll() is None:
            os.killpg(drill.pid, signal.SIGKILL)
            drill.wait()
