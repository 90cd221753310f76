"""Tests documents and docstrings: what they name exists, pages are short, sentences have a subject."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.domain.incidents import IncidentKind
from tests.support.file_map import DESIGN, updated

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/*.md"), *ROOT.glob("bench/*.md")]
)
GENERATED: Final = {
    "configuration.md": "tests.support.configuration_page",
    "reference.md": "tests.support.reference_page",
    "rights.md": "tests.support.rights_page",
    "runbooks.md": "monitoring.files",
}
"""Pages of docs/ with the modules that write them, which may be long."""
PAGES: Final = sorted(
    page for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if page.name not in GENERATED
)
CHAPTERS: Final = sorted((ROOT / "docs" / "design").glob("*.md"))
WORDS_MAX: Final = {
    "README.md": 820,
    "docs/DESIGN.md": 1850,
    "docs/benchmarks.md": 500,
    "docs/guarantees.md": 1200,
    "docs/parity.md": 2000,
    "docs/security.md": 1200,
    "docs/troubleshooting.md": 2000,
    ".": 950,
    "docs": 1050,
    "docs/decisions": 350,
    "docs/design": 750,
}
"""The most words of a page, or of each other page of a folder, so that it can be read at once."""
RESULTS: Final = "RESULTS.md", "FENCE_COSTS.md", "DATA_FRAMES.md", "TRANSFORMS.md"
FILES_OF_A_PARAGRAPH_MAX: Final = 3
_WORD: Final = re.compile(r"\S*\w\S*")
_PATH: Final = re.compile(r"`([\w./-]+/(?:[\w.-]+\.(?:py|md|java|json))?)`")
_MEASURED: Final = re.compile(r"(?<![\w.])\d+[.,]\d[\d.,]*\b(?!\.)")
_LINK: Final = re.compile(r"\]\((?!\w+://|#)([^)#]+)")
_ANCHOR: Final = re.compile(r"\]\((?!\w+://)([^)#\s]*\.md)?#([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FRAGMENT: Final = re.compile(
    r"(?:Of|As|Those|Behind|Without|Its|What|Who|How|Where|No|Their|They|For|On|In)\b"
    r"|.*?[.!?]\s+(?:Of|As|Those|Behind|Without|Its|Their)\b",
    re.DOTALL,
)
"""The beginnings of a docstring, and of a sentence in it, that hide what it is about."""
_PARAGRAPH: Final = re.compile(r"\n\s*(?:\n|(?=[-|]\s|\d+\. ))")


def paths(text: str) -> Iterator[str]:
    """Paths of files and folders; a bare name may be a user's."""
    yield from _PATH.findall(text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_files_that_documents_name_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    bases = ROOT, ROOT / "src" / "sparkmirror", document.parent
    named = [*paths(text), *_LINK.findall(text)]
    missing = [path for path in named if not any((base / path).exists() for base in bases)]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_headings_that_links_name_exist(document: Path) -> None:
    links = _ANCHOR.findall(document.read_text(encoding="utf-8"))
    pages = [(document.parent / path if path else document, anchor) for path, anchor in links]
    assert [(page.name, anchor) for page, anchor in pages if anchor not in anchors(page)] == []


def test_the_file_map_names_the_packages() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    assert updated(text) == text, "run `python -m tests.support.file_map`"


def test_the_design_leads_to_each_chapter() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    assert [path.name for path in CHAPTERS if f"(design/{path.name})" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_short(page: Path) -> None:
    path = page.relative_to(ROOT)
    words_max = WORDS_MAX.get(str(path)) or WORDS_MAX[str(path.parent)]
    assert len(_WORD.findall(page.read_text(encoding="utf-8"))) <= words_max


@pytest.mark.parametrize("page", GENERATED)
def test_pages_that_may_be_long_are_written_by_a_module(page: str) -> None:
    module = ROOT.joinpath(*GENERATED[page].split(".")).with_suffix(".py")
    assert page in module.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [DESIGN, *CHAPTERS], ids=lambda page: page.name)
def test_paragraphs_of_the_design_name_few_files(page: Path) -> None:
    paragraphs = _PARAGRAPH.split(page.read_text(encoding="utf-8"))
    files = [{path for path in paths(text) if not path.endswith("/")} for text in paragraphs]
    crowded = [named for named in files if len(named) > FILES_OF_A_PARAGRAPH_MAX]
    assert not crowded


def test_every_kind_of_incident_is_documented() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert [kind.value for kind in IncidentKind if f"`{kind.value}`" not in text] == []


def test_sentences_of_docstrings_begin_with_their_subject_or_a_verb() -> None:
    texts = [
        (path.name, str(node.value.value))
        for folder in ("src", "tests", "bench", "monitoring", "release")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    assert texts
    assert [(name, text) for name, text in texts if _FRAGMENT.match(text)] == []


def anchors(page: Path) -> set[str]:
    """The names by which links reach headings, as GitHub makes them."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


def test_numbers_of_the_page_of_benchmarks_are_those_that_were_measured() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    measured = "".join((ROOT / "bench" / name).read_text(encoding="utf-8") for name in RESULTS)
    numbers = set(_MEASURED.findall(text))
    assert numbers
    assert numbers - set(_MEASURED.findall(measured)) == set()
