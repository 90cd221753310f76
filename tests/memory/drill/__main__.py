"""Random runs of copy tasks with faults, each from its seed: `python -m tests.memory.drill --runs 10000`.

The last line has the number of runs, faults and failures, and the time. Before it comes, for each run that
failed, the command that repeats it. The exit code is 1 if any did.
"""

import argparse
import functools
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Final

from tests.memory.drill.run import Drill, Result

_MODULE: Final = "tests.memory.drill"
_INTERRUPTED: Final = 130
_OPTIONS: Final = "preserve", "transforms"


def run_seed(seed: int, *, preserve: bool = False, transforms: bool = False) -> Result:
    return Drill(seed, preserves_offsets=preserve, transforms=transforms).run()


def main() -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {_MODULE}", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--preserve", action="store_true", help="with offsets.preserve")
    parser.add_argument("--transforms", action="store_true", help="with a filter or a function")
    parser.add_argument("--log", action="store_true", help="show what the tasks log")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets must be the same each time
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", _MODULE, *sys.argv[1:]], environment)
    logging.basicConfig(level=logging.INFO if arguments.log else logging.CRITICAL, format="%(message)s")
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    # Ctrl-C goes to all processes of the terminal: those of the pool inherit the mask, this one decides.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with multiprocessing.Pool(min(arguments.jobs, arguments.runs)) as pool:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            chosen = {name: getattr(arguments, name) for name in _OPTIONS}
            options = "".join(f" --{name}" for name, is_chosen in chosen.items() if is_chosen)
            return report(pool.imap(functools.partial(run_seed, **chosen), seeds, chunksize=4), options)
        except KeyboardInterrupt:
            # Ending the pool in order may wait for ever for a process that waits for its first task.
            for process in multiprocessing.active_children():
                process.kill()
            os._exit(_INTERRUPTED)


def report(results: Iterable[Result], options: str = "") -> int:
    began, runs, faults, failed = time.monotonic(), 0, 0, 0
    for result in results:
        runs += 1
        faults += len(result.faults)
        if result.failure:
            failed += 1
            _say(f"seed {result.seed}: {result.failure}", *result.faults)
            _say(f"  python -m {_MODULE} --runs 1 --seed {result.seed}{options} --log")
    _say(f"{runs} runs, {faults} faults, {time.monotonic() - began:.0f} s, {failed} failures")
    return 1 if failed else 0


def _say(*lines: str) -> None:
    sys.stdout.write("\n    ".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
