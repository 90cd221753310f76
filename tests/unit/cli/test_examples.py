"""Tests that commands in help and documents can be pasted: the parser accepts each as it is written."""

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.cli.command_list import COMMANDS, overview
from sparkmirror.cli.command_runner import build_parser

ROOT: Final = Path(__file__).parents[3]
DOCUMENTS: Final = sorted(
    {ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")} - {ROOT / "docs" / "reference.md"}
)
PARSER: Final = build_parser()
WITH_EXAMPLES: Final = COMMANDS.keys() - {"prepare", "checkpoints", "heartbeats", "offset-syncs"}
_OPERATORS: Final = frozenset("&|<>();")
_BLOCK: Final = re.compile(r"^ *```(?:|sh|bash|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`([^`\n]+)`")
_WITH_FILE: Final = re.compile(r"sparkmirror .*(?:FILE|\.properties)")
_LINE: Final = re.compile(r"^ *(?:\$ )?((?:[^\n|&:]+ (?:\||&&) )?(?:watch )?sparkmirror .*)", re.MULTILINE)
_INDENTED: Final = re.compile(r"^  .*", re.MULTILINE)
_PLACEHOLDERS: Final = re.compile(r"[…\[\]{}]|<\w+>")


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from every_parser(each)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each sparkmirror command in the lines of a shell, up to the shell's own operators."""
    for line in _LINE.findall(text.replace("\\\n", " ")):
        words = shell_words(line)
        while "sparkmirror" in words:
            words = words[words.index("sparkmirror") + 1 :]
            end = next((at for at, word in enumerate(words) if _OPERATORS.issuperset(word)), len(words))
            yield words[:end]


def shell_words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def refusal(words: Sequence[str]) -> str | None:
    """Return what the parser says of a command that it does not accept."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            PARSER.parse_args(words)
    except SystemExit as ended:
        return said.getvalue() if ended.code else None
    return None


def refused(found: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    answers = [(shlex.join(words), refusal(words)) for words in found]
    return [(words, said) for words, said in answers if said is not None]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_examples_of_every_help_can_be_pasted(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    helps = [overview(), *(each.format_help() for each in every_parser(PARSER))]
    examples = ["\n".join(_INDENTED.findall(text)) for text in helps]
    found = [words for text in examples for words in commands(text)]
    assert {words[0] for words in found} >= WITH_EXAMPLES
    assert [words for words in found if _PLACEHOLDERS.search(" ".join(words))] == []
    assert refused(found) == []


def test_a_command_of_a_help_that_goes_on_ends_in_a_backslash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for parser in every_parser(PARSER):
        lines = parser.format_help().splitlines()
        for line, following in pairwise(lines):
            goes_on = following.startswith(" " * 6) and not following.lstrip().startswith("#")
            if goes_on and line.startswith("  ") and _LINE.match(line):
                assert line.endswith("\\"), (parser.prog, line)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_commands_of_documents_are_accepted(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    spans = filter(_WITH_FILE.match, _SPAN.findall(_BLOCK.sub("", text)))
    lines = [*_BLOCK.findall(text), *spans]
    assert refused([words for each in lines for words in commands(each)]) == []
