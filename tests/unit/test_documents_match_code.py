"""The log lines of docs/troubleshooting.md, and the commands that documents show, are those of the code."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.states_table import PAGE
from tests.unit.test_documents import DOCUMENTS, ROOT

REFERENCE: Final = ROOT / "docs" / "reference.md"
PASSES_ON: Final = "clusters tool"
"""A command whose arguments are those of another program."""
LENGTH_MIN: Final = 10
"""Shorter fragments of a line show nothing."""
_BY_LOG_LINE: Final = re.compile(r"^## By log line$(.*?)^## ", re.MULTILINE | re.DOTALL)
_CELL: Final = re.compile(r"^\| (`.*?) \|", re.MULTILINE)
_FILLED_IN: Final = re.compile(
    r"…|\b(?:N|M|A|HOST|KEY|FILE|NAME|NUMBER|'USER'|ADDRESS|VALUE)\b|'USER'|\d+|orders-"
)
_PLACE: Final = re.compile(r"%[\d.,]*[sdfr]|\{[^}]*\}|\n")
_CODE: Final = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_COMMAND: Final = re.compile(
    r"(?<![\w.-])(?<!\. )(?<!from )(?<!import )sparkmirror ([a-z][\w-]*)(?: ([a-z]+))?([^\n`#]*)"
)
_ARGUMENT: Final = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_SECTION: Final = re.compile(r"^##+ `sparkmirror ([^`]+)`$", re.MULTILINE)


@cache
def written() -> str:
    """Every fixed part of the texts in the code, a line each."""
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    nodes = (node for source in sources for node in ast.walk(ast.parse(source)))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(part for text in texts for part in _PLACE.split(text))


@cache
def reference() -> Mapping[str, str]:
    """Each command with its section of the reference."""
    found = _SECTION.split(REFERENCE.read_text(encoding="utf-8"))
    return dict(zip(found[1::2], found[2::2], strict=True))


def fragments() -> Iterator[str]:
    section = _BY_LOG_LINE.search(PAGE.read_text(encoding="utf-8"))
    assert section is not None
    for cell in _CELL.findall(section[1]):
        for part in _FILLED_IN.split(cell.replace("`", "")):
            if len(part.strip()) >= LENGTH_MIN and not part.strip().isupper():  # an error code of Kafka's
                yield part.strip(" :;.,")


def test_log_lines_of_the_page_are_written_by_the_code() -> None:
    assert len(list(fragments())) > LENGTH_MIN
    assert [text for text in fragments() if text not in written()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_commands_and_arguments_that_documents_show_exist(document: Path) -> None:
    code = "\n".join(_CODE.findall(document.read_text(encoding="utf-8")))
    for first, second, rest in _COMMAND.findall(code):
        command = f"{first} {second}" if f"{first} {second}" in reference() else first
        assert command in reference(), f"sparkmirror {first}"
        if command == PASSES_ON:
            continue
        unknown = set(_ARGUMENT.findall(rest)) - set(_ARGUMENT.findall(reference()[command])) - {"--help"}
        assert not unknown, f"sparkmirror {command}"
