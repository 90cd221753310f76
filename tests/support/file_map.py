"""Renders the file map of docs/DESIGN.md from the packages' docstrings; run as a module, it writes it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DESIGN: Final = ROOT / "docs" / "DESIGN.md"
_SOURCES: Final = ROOT / "src"
_BEGIN: Final = "<!-- file map: begin -->"
_END: Final = "<!-- file map: end -->"


def updated(text: str) -> str:
    """The text of DESIGN.md with the map as the packages are now."""
    table = "\n".join(["| package | contents |", "|---|---|", *_rows()])
    return re.sub(f"{_BEGIN}.*{_END}", lambda _: f"{_BEGIN}\n{table}\n{_END}", text, flags=re.DOTALL)


def _rows() -> Iterator[str]:
    """Each package or module in the order of the layers, and the packages in it."""
    root, layers = _SOURCES / "sparkmirror", _layers()
    every = [*(init.parent for init in root.glob("*/__init__.py")), *root.glob("[!_]*.py")]
    others = {f"sparkmirror.{path.stem}" for path in every} - {*layers}
    for name in [*sorted(others), *layers]:
        path = _SOURCES / name.replace(".", "/")
        yield _row(path if path.is_dir() else path.with_suffix(".py"))
        for init in sorted(path.glob("*/__init__.py")):
            yield _row(init.parent)


def _layers() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    return [name for layer in layers for name in layer.split(" | ")]


def _row(path: Path) -> str:
    file = path / "__init__.py" if path.is_dir() else path
    first = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
    name = path.relative_to(_SOURCES / "sparkmirror")
    return f"| `{name}{'/' if path.is_dir() else ''}` | {' '.join(first.split())} |"


if __name__ == "__main__":
    DESIGN.write_text(updated(DESIGN.read_text(encoding="utf-8")), encoding="utf-8")
