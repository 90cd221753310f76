"""Tests that the lists of CONTRIBUTING.md name the files that their examples are in."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src" / "sparkmirror"
_HOW_TO: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add …")[2]
_LISTS: Final = re.findall(r"^### (.+?)\n\nExample: `(.+?)`(.*?)(?=^##)", _HOW_TO, re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"`([\w./-]+/[\w-]+\.(?:py|md|json))`")
_ALTERNATIVE: Final = re.compile(r"\(.*?\)|A metric that Java has.*?\.$", re.MULTILINE | re.DOTALL)
"""Files that another change of the same kind touches."""


def sources() -> list[Path]:
    return [path for path in SOURCES.rglob("*") if path.suffix in (".py", ".json")]


def pattern_of(words: Sequence[str]) -> re.Pattern[str]:
    """The example as a key, or as a name in Python, Java or JSON."""
    name = "[._-]?".join(map(re.escape, words))
    return re.compile(rf"(?<![^\W_]){name}(?!\.?\w)", re.IGNORECASE)


def test_every_list_has_an_example() -> None:
    assert len(_LISTS) == _HOW_TO.partition("\n## ")[0].count("### ")


@pytest.mark.parametrize(
    ("example", "text"), [found[1:] for found in _LISTS], ids=[each[0] for each in _LISTS]
)
def test_a_list_names_the_files_that_have_its_example(example: str, text: str) -> None:
    words = re.split(r"[._-]", example)
    pattern, listed = pattern_of(words), set(_FILE.findall(_ALTERNATIVE.sub("", text)))
    found = {str(path.relative_to(SOURCES)) for path in sources() if pattern.search(path.read_text("utf-8"))}
    elsewhere = {path for path in listed if path.startswith(("docs/", "tests/", "bench/"))}
    assert listed - elsewhere == found
    contents = {path: (ROOT / path).read_text("utf-8") for path in elsewhere}
    assert [path for path, content in contents.items() if any(word not in content for word in words)] == []
