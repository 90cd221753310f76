"""Tests that the mark of pure modules is found, and that the contract holds each of them to it."""

from pathlib import Path
from typing import Final

import grimp
from importlinter.configuration import configure

from tests.support.pure_modules import SOURCES, PureContract, pure_modules

_OPTIONS: Final = {"forbidden_modules": ["time"], "allow_indirect_imports": "true"}


PURE: Final = frozenset([*pure_modules(SOURCES), "sparkmirror.domain.errors"])
"""The marked modules and packages, and a module in one of these packages."""


def test_modules_that_are_marked_or_in_a_marked_package_must_not_read_the_clock_and_others_may() -> None:
    configure()
    graph = grimp.ImportGraph()
    graph.add_module("time", is_squashed=True)
    for module in ("sparkmirror", "sparkmirror.copy.copy_loop", *PURE):
        graph.add_module(module)
        graph.add_import(importer=module, imported="time", line_number=1, line_contents="import time")
    session = {"root_packages": ["sparkmirror"], "include_external_packages": "true"}
    found = PureContract("pure", session, _OPTIONS).check(graph, verbose=False).metadata["invalid_chains"]
    importers = {link["importer"] for kind in found for chain in kind["chains"] for link in chain}
    assert importers == PURE


def test_the_mark_is_the_last_word_of_a_docstring(tmp_path: Path) -> None:
    package = tmp_path / "some" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Decides. Pure."""\n')
    (package / "moved.py").write_text('"""Decides.\n\nPure.\n"""\n\nimport math\n')
    (package / "spoken.py").write_text('"""Pure. Or rather not."""\n')
    (package / "quoted.py").write_text('"""Decides."""\n\nMARK = "Pure."\n')
    assert list(pure_modules(tmp_path)) == ["some.package", "some.package.moved"]
