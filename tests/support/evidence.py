"""Renders tests/EVIDENCE.md: each row of docs/guarantees.md with its mechanism, its limits and its tests.

`python -m tests.support.evidence` writes it, from the page, `tests/evidence.toml` and the tests' files.
"""

import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

TESTS: Final = Path(__file__).parents[1]
PAGE: Final = TESTS / "EVIDENCE.md"
GUARANTEES: Final = TESTS.parent / "docs" / "guarantees.md"
_DATA: Final = TESTS / "evidence.toml"
_WIDTH: Final = 140
_TEST: Final = re.compile(r"^def (test_\w+)", re.MULTILINE)
_HEADS: Final = "situation", "---"

_HEAD: Final = """\
# Evidence for the guarantees

Each row of [docs/guarantees.md](../docs/guarantees.md) with its promise, its mechanism, its limits, and the
tests that show it. `python -m tests.support.evidence` writes this page from that one and from
`tests/evidence.toml`. [docs/design/tests.md](../docs/design/tests.md) says which command runs which tests.
"""
_CASES: Final = """\
## Known gap

No test has [the one of the page](../docs/guarantees.md#known-gap): a late batch takes the place of a fence
that the target lost.

## Kafka's own integration cases

Every case of MirrorMaker 2's integration tests in Kafka 4.3 (`connect/mirror`), and the test here that has
it. Where Java promises offsets that are at most `offset.lag.max` behind, ours have to be exact.

| case of Kafka | here |
|---|---|"""
_FOOT: Final = """
"All of these" runs every case above under that setting in Kafka; here the tests named run a mirror with it,
and the rest does not depend on it.
"""


class Promise(NamedTuple):
    """A row of the page of guarantees, below the heading `section`."""

    section: str
    situation: str
    text: str


class Evidence(NamedTuple):
    """The mechanism that makes a promise true; `tests` are names of tests, or paths of whole files."""

    mechanism: str
    tests: Sequence[str]
    limits: str = ""


def promises() -> Iterator[Promise]:
    """Each row of the page's tables, in order."""
    section = ""
    for line in GUARANTEES.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("|"):
            situation, text, _ = (cell.strip() for cell in line.strip("|").split("|"))
            if not situation.startswith(_HEADS):
                yield Promise(section, situation, text)


def evidence() -> Mapping[str, Evidence]:
    """The evidence for each situation."""
    return {situation: Evidence(**entry) for situation, entry in _data()["situations"].items()}


def cases() -> Mapping[str, Sequence[str]]:
    """The tests that have each of Kafka's own cases."""
    return {entry["case"]: entry["tests"] for entry in _data()["cases"]}


@cache
def files() -> Mapping[str, Sequence[Path]]:
    """The files that have a test of each name."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted([*TESTS.rglob("test_*.py"), *TESTS.rglob("check_*.py")]):
        for name in _TEST.findall(path.read_text(encoding="utf-8")):
            found[name].append(path)
    return found


def rendered() -> str:
    """The text of the page."""
    rows = (f"| {case} | {'; '.join(_by_file(tests))} |" for case, tests in cases().items())
    return "\n".join((_HEAD, *_sections(), _CASES, *rows, _FOOT))


def _sections() -> Iterator[str]:
    section, known = "", evidence()
    for promise in promises():
        if promise.section != section:
            section = promise.section
            yield f"## {section}\n"
        yield from _section(promise, known[promise.situation])


def _section(promise: Promise, shown: Evidence) -> Iterator[str]:
    yield f"### {promise.situation}\n"
    yield _paragraph(f"Promise: {promise.text}.")
    yield _paragraph(f"Mechanism: {shown.mechanism}")
    if shown.limits:
        yield _paragraph(f"Limits: {shown.limits}")
    yield "\n".join([*(f"- {line}" for line in _by_file(shown.tests)), ""])


def _paragraph(text: str) -> str:
    wrapped = textwrap.wrap(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*wrapped, ""])


def _by_file(tests: Sequence[str]) -> Iterator[str]:
    """Each file with those of the tests that it has."""
    named: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        if "/" in test:
            named[test] = []
        for path in files().get(test, ()):
            named[f"{TESTS.name}/{path.relative_to(TESTS)}"].append(f"`{test}`")
    for file, names in named.items():
        yield f"`{file}`: {', '.join(names)}" if names else f"`{file}`"


def _data() -> Mapping[str, Any]:
    return tomllib.loads(_DATA.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
