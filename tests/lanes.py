"""Runs the tests in parts, three side by side, `python -m tests.lanes`: each waits a good part of its time.

The next part begins when one has ended, the longest first. What each says is shown when it has ended, and at
the end the sum. Arguments are pytest's, for all of them.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

SIDE_BY_SIDE: Final = 3
_NO_TESTS: Final = 5
"""pytest's exit code where the arguments leave a part nothing to do."""
_ROOT: Final = Path(__file__).parents[1]
_COUNT: Final = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)\b")


class Part(NamedTuple):
    """Paths for one pytest. Each starts clusters, and what else its tests share, of its own."""

    name: str
    paths: Sequence[str]


class Ended(NamedTuple):
    part: Part
    code: int
    output: str
    seconds: float

    @property
    def counts(self) -> Counter[str]:
        """Of the summary, which is the last line."""
        last = self.output.rstrip().rpartition("\n")[2]
        return Counter({what: int(number) for number, what in _COUNT.findall(last)})


def main(arguments: Sequence[str]) -> int:
    """The exit code of a part that failed, 0 if none did. Ctrl-C reaches all: they end their brokers."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    codes = []
    for ended in _ended(arguments):
        _say(f"{ended.part.name}: {ended.seconds:.0f} s\n{ended.output}")
        counts += ended.counts
        codes.append(0 if ended.code == _NO_TESTS else ended.code)
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    _say(f"{told or 'no tests ran'} in {time.monotonic() - began:.2f}s")
    return next(filter(None, codes), 0)


def parts() -> Iterator[Part]:
    """Everything, what takes longest first. Tests that look at the same mirror or cluster stay together."""
    contract, system = _files("contract"), _files("system")
    breaking = [path for path in contract if _names(path, "trio", "frail_cluster", "guarded_cluster")]
    sharing = [path for path in system if _names(path, "Mirrored")]
    others = [path for path in system if path not in sharing]
    yield Part("system tests, part 1", others[1::2])
    yield Part("contract tests that break brokers", breaking)
    yield Part("system tests, part 2", others[::2])
    yield Part("other contract tests", [path for path in contract if path not in breaking])
    yield Part("system tests of one mirror", sharing)
    yield Part("Spark and unit tests", ["tests/spark", "tests/unit"])
    yield Part("faults", ["tests/faults"])


def _files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(_ROOT)) for path in (_ROOT / "tests" / folder).glob("test_*.py"))


def _names(path: str, *words: str) -> bool:
    text = (_ROOT / path).read_text()
    return any(word in text for word in words)


def _ended(arguments: Sequence[str]) -> Iterator[Ended]:
    """The parts as they end, SIDE_BY_SIDE at a time."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running = [pool.submit(_run, arguments, part) for part in parts()]
        try:
            for future in as_completed(running):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _run(arguments: Sequence[str], part: Part) -> Ended:
    _say(f"{part.name}: begun")
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-m", "pytest", *arguments, *part.paths]
        code = subprocess.call(command, cwd=_ROOT, stdout=output, stderr=output)
        output.seek(0)
        said = output.read().decode(errors="replace")
    return Ended(part, code, said, time.monotonic() - began)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
