"""Looks at the pages with a real browser: every page, dark and light, from a phone to a large screen.

No part of `make test`: it needs Chromium, Playwright and npm, which fetches axe-core.
`apt-get install chromium npm; python -m pip install playwright==1.65.2`, then
`python -m pytest tests/browser/check_pages.py`. CHROMIUM names another program than /usr/bin/chromium.
Pictures of all pages are in the temporary folder that `--basetemp` names; `pictures.py` compares them.
"""

import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, Page, Route

from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.connect.rest.mirror_app import ConnectApp, mirror_app
from sparkmirror.connect.rest.rest_settings import HTTP, Listener, RestSettings
from sparkmirror.connect.rest.server import RestServer
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.plan.flow_plan_json import to_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.browser.chromium import chromium
from tests.browser.pictures import Pictures
from tests.support.flow_plans import PLAN
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import SOURCE, behind, everything, look, source
from tests.support.rest_logins import CONFIG
from tests.support.rest_serving import serving, settings

AXE: Final = "axe-core@4.14.1"
PAGES: Final = {
    "overview": "",
    "flow": "flow?flow=a-%3Eb",
    "flow-page-2": "flow?flow=a-%3Eb&page=2",
    "topic": "topic?flow=a-%3Eb&name=orders",
    "groups": "groups?flow=a-%3Eb",
    "group": "group?flow=a-%3Eb&name=behind",
    "events": "events?flow=a-%3Eb",
    "connectors": "connectors?flow=a-%3Eb",
    "verify": "verify?flow=a-%3Eb",
    "migrations": "migrations?flow=a-%3Eb",
}
FORMS: Final = {
    "act": "act?flow=a-%3Eb&name=MirrorSourceConnector&action=stop",
    "plan": "plan?flow=a-%3Eb",
}
"""Pages of a worker that are made when they are asked for."""
Scheme = Literal["light", "dark"]
WIDTHS: Final = (360, 1280, 3840)
NODES_MAX: Final = 3000
BANNER_S: Final = 10.0
SEEN_S: Final = 2.0
LATE_MS: Final = 500
ROUND: Final = 2
"""Messages of a second: what has changed, and the time."""


class Served:
    """The pages of looks that a test changes."""

    def __init__(self) -> None:
        self.looks: Sequence[ConnectorLook] = everything()
        self._port = ReservedPort()
        self.url = f"http://{HOST}:{self._port.number}/ui/"
        self._server: RestServer | None = None

    def start(self) -> None:
        settings = RestSettings(listeners=(Listener(HTTP, HOST, self._port.number),))
        view = CurrentView(lambda: Node("node-1:8083", "1.0", ("http://node-1:8083/",)), lambda: self.looks)
        self._server = RestServer(settings)
        self._server.bind()
        self._server.start(ConnectApp(mirror_app(view, lambda: ("text/plain", b""), lambda: True, settings)))

    def stop(self) -> None:
        assert self._server is not None
        self._server.stop()

    def close(self) -> None:
        self.stop()
        self._port.release()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    made = Served()
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def worker() -> Iterator[str]:
    herder = MemoryHerder()
    herder.put(SOURCE, {**CONFIG, "name": SOURCE})
    herder.planned = to_json(PLAN)
    view = CurrentView(lambda: Node("node-1", "1.0"), everything)
    with serving(herder, settings(ui_actions="true"), view=view) as url:
        yield f"{url}/ui/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pictures(browser: Browser) -> Iterator[Pictures]:
    made = Pictures(browser.new_page())
    yield made
    made.end()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run(["npm", "pack", AXE], cwd=folder, check=True, capture_output=True)
    (packed,) = folder.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return (folder / "package" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def reader(browser: Browser, axe: str, pictures: Pictures, tmp_path: Path) -> "Reader":
    return Reader(browser, axe, pictures, tmp_path)


class Complaints:
    """Collects what a page must not do: errors, messages of the console, requests to elsewhere, dialogs."""

    def __init__(self, page: Page, url: str) -> None:
        self.found: list[str] = []
        page.on("console", lambda message: self.found.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(url) else self.found.append(f"request: {request.url}")
            ),
        )


def await_true(holds: Callable[[], Any], within_s: float, page: Page) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, page.inner_text("body")
        page.wait_for_timeout(50)


@pytest.mark.parametrize("looked_at", list(product(PAGES, WIDTHS, ("light", "dark"))), ids=str)
def test_a_page_is_whole_and_quiet_and_can_be_read(
    looked_at: tuple[str, int, Scheme], served: Served, reader: "Reader"
) -> None:
    name, width, scheme = looked_at
    with reader.opened(served.url, width, scheme) as page:
        page.goto(served.url + PAGES[name])
        drawn = page.text_content("#asof")
        await_true(lambda: page.text_content("#asof") != drawn, 10.0, page)  # the stream is heard
        assert page.is_hidden("#banner")
        reader.read(page, f"{name}-{width}-{scheme}")


@pytest.mark.parametrize("looked_at", list(product(FORMS, WIDTHS, ("light", "dark"))), ids=str)
def test_what_is_asked_for_once_is_whole_and_quiet_and_can_be_read(
    looked_at: tuple[str, int, Scheme], worker: str, reader: "Reader"
) -> None:
    name, width, scheme = looked_at
    with reader.opened(worker, width, scheme) as page:
        page.goto(worker + FORMS[name])
        assert page.locator("main h1").is_visible()
        reader.read(page, f"{name}-{width}-{scheme}")


class Reader:
    """Opens pages, and looks at them as a user does who sees, and as one who does not."""

    def __init__(self, browser: Browser, axe: str, pictures: Pictures, folder: Path) -> None:
        self._browser = browser
        self._axe = axe
        self._pictures = pictures
        self._folder = folder

    @contextmanager
    def opened(self, url: str, width: int, scheme: Scheme) -> Iterator[Page]:
        context = self._browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        complaints = Complaints(page, url)
        yield page
        assert complaints.found == []
        context.close()

    def read(self, page: Page, name: str) -> None:
        png = page.screenshot(path=self._folder / f"{name}.png", full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0
        assert page.evaluate("document.querySelectorAll('*').length") <= NODES_MAX
        page.evaluate(self._axe)
        serious = [
            f"{it['id']}: {it['help']}: {it['nodes'][0]['html']}"
            for it in page.evaluate("axe.run()")["violations"]
            if it["impact"] in ("serious", "critical")
        ]
        assert serious == []
        self._pictures.compare(name, png)


def test_without_javascript_pages_can_be_read(served: Served, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in PAGES.values():
        page.goto(served.url + path)
        assert page.locator("main h1").is_visible()
        assert page.locator("main table tbody tr").first.is_visible()
    context.close()


def test_what_happens_is_seen_and_what_is_typed_stays(served: Served, browser: Browser) -> None:
    page = browser.new_page()
    served.looks = [source(look("orders"))]
    page.goto(served.url + "flow?flow=a-%3Eb")
    await_true(lambda: "caught up" in page.inner_text("main"), SEEN_S, page)
    page.fill("#matching", "ord")
    served.looks = [source(behind("orders", 0, 6000, closed=3000))]
    await_true(lambda: "catching up" in page.inner_text("table"), SEEN_S, page)
    assert page.input_value("#matching") == "ord"
    page.press("#matching", "Enter")
    await_true(lambda: "matching=ord" in page.url, SEEN_S, page)
    page.close()
    served.looks = everything()


def test_a_page_says_that_it_is_old_and_continues_when_the_mirror_is_back(browser: Browser) -> None:
    served = Served()
    served.start()
    page = browser.new_page()
    page.goto(served.url)
    drawn = page.text_content("#asof")
    await_true(lambda: page.text_content("#asof") != drawn, SEEN_S, page)
    served.stop()
    await_true(lambda: page.is_visible("#banner"), BANNER_S, page)
    assert "Nothing was heard of the mirror" in page.inner_text("#banner")
    served.looks = [source(look("returned"))]
    served.start()
    await_true(lambda: page.is_hidden("#banner"), BANNER_S, page)
    assert "1 topic, 1 partition" in page.inner_text("main")
    page.close()
    served.close()


@pytest.mark.parametrize("happens", ["a script is late", "nobody answers", "it is refused"])
def test_a_page_follows_whatever_happens_to_its_first_requests(
    happens: str, served: Served, browser: Browser
) -> None:
    """The mirror is in its first second, on a busy machine."""
    page = browser.new_page()
    handled: list[str] = []

    def handle(route: Route) -> None:
        handled.append(route.request.url)
        if happens == "a script is late":
            page.wait_for_timeout(LATE_MS)
            route.continue_()
        elif len(handled) > 1:
            route.continue_()
        elif happens == "nobody answers":
            route.abort()
        else:
            route.fulfill(status=503, body="Too many connections")

    page.route("**/hx-sse.min.js" if happens == "a script is late" else "**/live/**", handle)
    page.goto(served.url)
    drawn = page.text_content("#asof")
    await_true(lambda: page.text_content("#asof") != drawn, BANNER_S, page)
    assert handled
    assert "Too many connections" not in page.inner_text("main")
    page.close()


def test_a_browser_that_slept_continues_without_a_flood(served: Served, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(served.url)
    drawn = page.text_content("#asof")
    await_true(lambda: page.text_content("#asof") != drawn, SEEN_S, page)
    page.evaluate(
        """() => {
            window.heard = 0;
            document.addEventListener("htmx:sse:after:message", () => { window.heard += 1; });
            Object.defineProperty(document, "hidden", { get: () => window.sleeps });
            window.turn = sleeps => {
                window.sleeps = sleeps;
                document.dispatchEvent(new Event("visibilitychange"));
            };
            window.turn(true);
        }"""
    )
    page.wait_for_timeout(500)  # for what is on its way
    heard = page.evaluate("window.heard")
    for number in range(5):
        served.looks = [source(look(f"while-it-slept-{number}"))]
        page.wait_for_timeout(1000)
    assert page.evaluate("window.heard") == heard
    page.evaluate("window.turn(false)")
    await_true(lambda: "1 topic, 1 partition" in page.inner_text("main"), BANNER_S, page)
    assert page.evaluate("window.heard") - heard <= ROUND
    assert page.is_hidden("#banner")
    page.close()
    served.looks = everything()


def test_all_links_can_be_reached_by_the_keyboard(served: Served, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(served.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    links = page.locator("main a").count()
    reached = set()
    for _ in range(3 * links + 20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('href')"))
    wanted = {link.get_attribute("href") for link in page.locator("main a").all()}
    assert wanted <= reached
    page.close()
