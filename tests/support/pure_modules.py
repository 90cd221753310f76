"""Holds pure modules to what they say: a contract of import-linter whose modules are those that are marked.

The mark is the word "Pure." at the end of a module's docstring, or of a package's for all that is below it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from grimp import ImportGraph
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.domain import fields
from importlinter.domain.contract import ContractCheck
from importlinter.domain.imports import ModuleExpression

SOURCES: Final = Path(__file__).parents[2] / "src"
_MARK: Final = "Pure."


class PureContract(ForbiddenContract):
    """A `forbidden` contract without a list of source modules."""

    type_name = "pure"

    source_modules = fields.SetField(subfield=fields.ModuleExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        marked: Any = {ModuleExpression(name) for name in pure_modules(SOURCES)}
        self.source_modules = marked
        return super().check(graph, verbose)


def pure_modules(sources: Path) -> Iterator[str]:
    """The marked modules and packages below a folder, by their dotted names."""
    for file in sorted(sources.rglob("*.py")):
        text = file.read_text()
        if _MARK in text and (ast.get_docstring(ast.parse(text)) or "").endswith(_MARK):
            module = file.relative_to(sources).with_suffix("")
            yield ".".join(module.parent.parts if module.name == "__init__" else module.parts)
