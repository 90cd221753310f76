"""Tests that the mark of pure modules is found, and that the contract holds each of them to it."""

from pathlib import Path
from typing import Final

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.domain.contract import ContractCheck

from tests.support.pure_modules import SOURCES, PureContract, pure_modules

_OPTIONS: Final = {"forbidden_modules": ["time"], "allow_indirect_imports": "true"}


def checked(importer: str) -> ContractCheck:
    """The contract, for a graph in which one module imports `time`."""
    configure()
    graph = grimp.ImportGraph()
    for module in ("sparkmirror", *pure_modules(SOURCES)):
        graph.add_module(module)
    graph.add_module("time", is_squashed=True)
    graph.add_import(importer=importer, imported="time", line_number=1, line_contents="import time")
    session = {"root_packages": ["sparkmirror"], "include_external_packages": "true"}
    return PureContract("pure", session, _OPTIONS).check(graph, verbose=False)


@pytest.mark.parametrize("importer", [*pure_modules(SOURCES), "sparkmirror.domain.errors"])
def test_a_marked_module_and_one_in_a_marked_package_must_not_read_the_clock(importer: str) -> None:
    assert not checked(importer).kept


def test_other_modules_may_read_the_clock() -> None:
    assert checked("sparkmirror.copy.copy_loop").kept


def test_the_mark_is_the_last_word_of_a_docstring(tmp_path: Path) -> None:
    package = tmp_path / "some" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Decides. Pure."""\n')
    (package / "moved.py").write_text('"""Decides.\n\nPure.\n"""\n\nimport math\n')
    (package / "spoken.py").write_text('"""Pure. Or rather not."""\n')
    (package / "quoted.py").write_text('"""Decides."""\n\nMARK = "Pure."\n')
    assert list(pure_modules(tmp_path)) == ["some.package", "some.package.moved"]
