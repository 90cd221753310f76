"""The documentation as a site: links lead somewhere, nothing is loaded from elsewhere, diagrams are drawn."""

import functools
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest

from release import docs_site
from release.docs_site import ROOT, SITE

CHROMIUM: Final = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
_DIAGRAM: Final = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
DRAWN: Final = sorted(page for page in ROOT.glob("docs/**/*.md") if _DIAGRAM.search(page.read_text("utf-8")))


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        for link in filter(None, (given.get("href"), given.get("src"))):
            (self.links if tag == "a" else self.loaded).append(link)


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    docs_site.main()
    found = {}
    for file in SITE.rglob("*.html"):
        found[file] = Page()
        found[file].feed(file.read_text("utf-8"))
    return found


@pytest.fixture
def served(pages: dict[Path, Page]) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_link_leads_to_a_page_and_a_heading(pages: dict[Path, Page]) -> None:
    dead = [
        (str(file.relative_to(SITE)), link)
        for file, page in pages.items()
        for link in _dead(file, page, pages)
    ]
    assert not dead


def _dead(file: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for link in page.links:
        url = urlsplit(link)
        target = (file.parent / unquote(url.path)).resolve() if url.path else file
        target = target / "index.html" if target.is_dir() else target
        if url.scheme:
            continue
        if not target.exists() or (url.fragment and url.fragment not in pages[target].ids):
            yield link


def test_nothing_is_loaded_from_another_server(pages: dict[Path, Page]) -> None:
    loaded = {(file, link) for file, page in pages.items() for link in page.loaded}
    assert not [link for _, link in loaded if urlsplit(link).netloc]
    assert not [link for file, link in loaded if not (file.parent / urlsplit(link).path).resolve().exists()]


def test_the_site_has_every_page_and_the_search_finds_it(pages: dict[Path, Page]) -> None:
    sources = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    names = {
        str(source.relative_to(ROOT).with_suffix(".html")).replace("README.html", "index.html")
        for source in sources
    }
    assert names <= {str(file.relative_to(SITE)) for file in pages}
    index = json.dumps(json.loads((SITE / "search.json").read_text("utf-8")))
    assert [name for name in names if name not in index and not name.endswith("index.html")] == []
    assert "offset.flush.interval.ms" in index


@pytest.mark.parametrize("page", DRAWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_diagram_is_drawn_without_a_network(page: Path, served: str) -> None:
    """Mermaid replaces what it has drawn, and leaves what it can't read."""
    if CHROMIUM is None:
        pytest.skip("not run: there is no program chromium, and CHROMIUM names none")
    address = f"{served}/{page.relative_to(ROOT).with_suffix('.html')}"
    offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom"]
    ran = subprocess.run([CHROMIUM, *options, offline, address], capture_output=True, text=True, check=True)
    drawn = len(_DIAGRAM.findall(page.read_text("utf-8")))
    assert re.findall(r'<(\w+) class="mermaid"', ran.stdout) == ["div"] * drawn
