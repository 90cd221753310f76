"""Each guarantee has its evidence, and each piece of evidence is a test that some Make target runs."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.evidence import PAGE, TESTS, cases, evidence, files, promises, rendered
from tests.tiers import Tier, tier_of


def named() -> Iterator[str]:
    """The tests, and the files of tests, that the data names."""
    for entry in evidence().values():
        yield from entry.tests
    for tests in cases().values():
        yield from tests


def places() -> Iterator[tuple[Path, str]]:
    """Each file with the test in it that is named; the name is empty where the whole file is."""
    for test in named():
        if "/" in test:
            yield TESTS.parent / test, ""
        else:
            yield from ((path, test) for path in files()[test])


def test_the_page_is_made_from_the_data() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered(), "run `python -m tests.support.evidence`"


def test_every_promise_has_its_evidence_and_every_evidence_its_promise() -> None:
    situations = [promise.situation for promise in promises()]
    assert situations
    assert situations == list(evidence())
    assert [situation for situation, entry in evidence().items() if not entry.tests] == []


def test_tests_that_are_named_exist_once_in_the_data_of_a_promise() -> None:
    assert [test for test in named() if "/" not in test and test not in files()] == []
    assert [test for test in named() if "/" in test and not (TESTS.parent / test).is_file()] == []
    assert [situation for situation, each in evidence().items() if len({*each.tests}) < len(each.tests)] == []


def test_a_make_target_runs_each_test_that_is_named() -> None:
    folders = [(path.relative_to(TESTS).parts[0], f"{path.name}::{name}") for path, name in places()]
    assert folders
    assert [test for folder, test in folders if tier_of(folder, test, ()) is Tier.BENCH] == []


def test_no_test_that_is_named_is_skipped() -> None:
    assert [place for place in places() if any("skip" in mark for mark in marks(*place))] == []


def test_no_test_is_expected_to_fail() -> None:
    """A gap that a test shows would be one more of the page's known gaps."""
    failing = [
        (path, name) for name, paths in files().items() for path in paths if "xfail" in path.read_text()
    ]
    assert [place for place in failing if any("xfail" in mark for mark in marks(*place))] == []


def marks(path: Path, name: str) -> Iterator[str]:
    """The marks of the whole file, and those of this test in it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from map(ast.unparse, node.decorator_list)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            yield ast.unparse(node.value)
