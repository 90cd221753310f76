"""Installs the package shown in docs/plugins.md as pip does."""

import re
import tomllib
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).parents[2] / "docs" / "plugins.md"
_FILE: Final = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)


def install(folder: Path) -> Path:
    """Write the page's files and the package's metadata into the folder; returns it."""
    folder.mkdir()
    files = dict(_FILE.findall(_PAGE.read_text(encoding="utf-8")))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder
