"""Builds the documentation as static pages with search: `python -m release.docs_site`, by `make docs`.

The site has the README, every page of `docs` and whatever they link to, in the folders that they have here:
links need no change. The menu is the list in `docs/README.md`. A page loads nothing from elsewhere: Mermaid,
which draws the diagrams, is fetched from npm once and checked against its sum.
"""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BUILD: Final = ROOT / "build" / "docs"
SITE: Final = BUILD / "site"
ZENSICAL: Final = ROOT / "build" / "tools" / "bin" / "zensical"

MERMAID: Final = "mermaid@12.3.0"
MERMAID_SHA512: Final = (
    "4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw=="
)
MERMAID_FILE: Final = "assets/mermaid.min.js"

_LINK: Final = re.compile(r"\]\(([^)#\s]+)")
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_SETTINGS: Final = """\
[project]
site_name = "sparkmirror"
docs_dir = "source"
site_dir = "site"
use_directory_urls = false
extra_javascript = ["{mermaid}"]
nav = {nav}

[project.theme]
font = false
features = ["navigation.sections", "navigation.top", "search.highlight", "content.code.copy"]

[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
custom_fences = [{{ name = "mermaid", class = "mermaid", format = "pymdownx.superfences.fence_code_format" }}]
"""


def main() -> None:
    """Build the site. A dead link or anchor ends it with an error."""
    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    for name in sorted(_reachable()):
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            (copy / "README.md").parent.mkdir(exist_ok=True)
            (copy / "README.md").write_text(_list_of(ROOT / name), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / name, copy)
    (source / MERMAID_FILE).parent.mkdir(exist_ok=True)
    (source / MERMAID_FILE).write_bytes(_mermaid())
    settings = _SETTINGS.format(mermaid=MERMAID_FILE, nav=json.dumps(_menu()).replace('": ', '" = '))
    (BUILD / "zensical.toml").write_text(settings, encoding="utf-8")
    subprocess.run([ZENSICAL, "build", "--strict"], cwd=BUILD, check=True)
    (SITE / "404.html").unlink(missing_ok=True)  # its links are right at the root of a server only
    sys.stdout.write(f"python3 -m http.server --directory {SITE.relative_to(ROOT)} shows the site\n")


def _reachable() -> set[str]:
    """Find the pages, and the files and folders of this tree that they link to."""
    left = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    found: set[str] = set()
    while left:
        file = left.pop()
        name = file.relative_to(ROOT).as_posix()
        if name not in found:
            found.add(name)
            left += _linked(file) if file.suffix == ".md" else []
    return found


def _linked(page: Path) -> Iterator[Path]:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / link).resolve()
        if ":" not in link and target.exists() and target.is_relative_to(ROOT):
            yield target / "README.md" if (target / "README.md").exists() else target


def _list_of(folder: Path) -> str:
    """Write the page of a folder that is linked and has none: a list of its pages."""
    lines = [f"- [{_title(page)}]({page.name})" for page in sorted(folder.glob("*.md"))]
    return "\n".join([f"# {folder.name.capitalize()}", "", *lines, ""])


def _menu() -> list[dict[str, object]]:
    """Return the sections of `docs/README.md` with the pages that each lists."""
    index = ROOT / "docs" / "README.md"
    _, *parts = _SECTION.split(index.read_text(encoding="utf-8"))
    menu: list[dict[str, object]] = [{"sparkmirror": "README.md"}, {_title(index): "docs/README.md"}]
    for section, text in zip(parts[::2], parts[1::2], strict=True):
        targets = [(index.parent / link).resolve() for link in _LINK.findall(text)]
        pages = [page for page in targets if page.suffix == ".md" and page != ROOT / "README.md"]
        menu.append({section: [{_title(page): page.relative_to(ROOT).as_posix()} for page in pages]})
    return menu


def _title(page: Path) -> str:
    found = _TITLE.search(page.read_text(encoding="utf-8"))
    return found[1].replace("`", "") if found else page.stem


def _mermaid() -> bytes:
    """Return Mermaid's script out of npm's package, which is fetched once."""
    packed = BUILD / f"{MERMAID.replace('@', '-')}.tgz"
    if not packed.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", "--pack-destination", str(BUILD), MERMAID]
        subprocess.run(command, cwd=BUILD, stdout=subprocess.DEVNULL, check=True)
    if base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode() != MERMAID_SHA512:
        sys.exit(f"{packed} is not the recorded {MERMAID}")
    with tarfile.open(packed) as package:
        script = package.extractfile("package/dist/mermaid.min.js")
        assert script is not None
        return script.read()


if __name__ == "__main__":
    main()
