"""Fills in the pages' forms in a real browser, with and without JavaScript, on a worker's REST API.

No part of `make test`; `check_pages.py` says what it needs. `python -m pytest tests/browser/check_forms.py`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from sparkmirror.domain.connect import TargetState
from sparkmirror.plan.flow_plan_json import to_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.browser.check_pages import Complaints
from tests.browser.chromium import chromium
from tests.support.flow_plans import PLAN
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import SOURCE, everything
from tests.support.rest_logins import CONFIG
from tests.support.rest_serving import serving, settings

FLOW: Final = "flow=a-%3Eb"


class Worker(NamedTuple):
    herder: MemoryHerder
    url: str


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def worker() -> Iterator[Worker]:
    herder = MemoryHerder()
    herder.put(SOURCE, {**CONFIG, "name": SOURCE})
    herder.planned = to_json(PLAN)
    view = CurrentView(lambda: Node("node-1", "1.0"), everything)
    with serving(herder, settings(ui_actions="true"), view=view) as url:
        yield Worker(herder, f"{url}/ui/")


@pytest.fixture(params=[True, False], ids=["javascript", "without"])
def page(request: pytest.FixtureRequest, browser: Browser, worker: Worker) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param)
    page = context.new_page()
    complaints = Complaints(page, worker.url)
    yield page
    assert complaints.found == []
    context.close()


def ask_for(page: Page, worker: Worker, action: str) -> None:
    page.goto(f"{worker.url}connectors?{FLOW}")
    page.get_by_role("link", name=f"{action}…").first.click()
    page.wait_for_url("**/act?*")


def state(worker: Worker) -> TargetState:
    return worker.herder._states[SOURCE]


def test_a_connector_is_paused_and_resumed(page: Page, worker: Worker) -> None:
    ask_for(page, worker, "Pause")
    page.fill("#typed", SOURCE)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_url("**/connectors?*")
    assert state(worker) is TargetState.PAUSED
    ask_for(page, worker, "Resume")
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url("**/connectors?*")
    assert state(worker) is TargetState.RUNNING


def test_a_form_that_was_sent_is_not_sent_again(page: Page, worker: Worker) -> None:
    ask_for(page, worker, "Restart")
    page.get_by_role("button", name="Restart").click()
    page.wait_for_url("**/connectors?*")
    count = len(worker.herder.notes)
    page.go_back()  # a page that is not kept: the browser asks for a new form
    page.wait_for_url("**/act?*")
    page.get_by_role("button", name="Restart").click()
    page.wait_for_url("**/connectors?*")
    assert len(worker.herder.notes) == count + 1


def test_a_comparison_is_begun_and_a_plan_is_made(page: Page, worker: Worker) -> None:
    ask_for(page, worker, "Verify")
    page.get_by_role("button", name="Verify").click()
    page.wait_for_url("**/verify?*")
    assert worker.herder.compared is not None
    with page.expect_download() as download:
        page.get_by_role("link", name="as JUnit XML").click()
    assert download.value.suggested_filename == "verify.xml"
    page.get_by_role("link", name="Plan").click()
    page.wait_for_url("**/plan?*")
    assert "+ create 2 topics on eu" in page.inner_text("main")
