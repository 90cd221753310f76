"""Forms of the pages: who may send them, that each is good once, and that they do what the REST API does."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.connect.rest.login_settings import BASIC_AUTHENTICATION
from sparkmirror.connect.rest.rest_settings import rest_settings
from sparkmirror.domain.connect import NotLeaderError, TargetState
from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.setup.plan.flow_plan_json import to_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.support.flow_plans import PLAN
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import HOSTILE, SOURCE, look, source
from tests.support.rest_serving import serving, settings
from tests.system.rest_requests import Answer, Request, ask
from tests.system.test_rest_logins import CONFIG, MIA, MODULE, OPS

FLOW: Final = "a->b"


class Page:
    """A browser that looks at one node."""

    def __init__(self, url: str, login: str | None = None) -> None:
        self.url = url
        self.login = {} if login is None else {"Authorization": login}
        self.origin = {"Origin": url}

    def get(self, path: str, **query: str) -> Answer:
        return ask(self.url, Request("GET", f"/ui/{path}?{urlencode(query)}", headers=self.login))

    def fields(self, action: str, name: str = SOURCE) -> dict[str, str]:
        """The form that asks whether it should be done."""
        html = self.get("act", flow=FLOW, name=name, action=action).body.decode()
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', html)
        return {key: unescape(value) for key, value in found}

    def send(self, fields: dict[str, str], **headers: str) -> Answer:
        body = urlencode(fields).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        others = {key.replace("_", "-"): text for key, text in headers.items()}
        sent = {**self.login, **form, **self.origin, **others}
        return ask(self.url, Request("POST", "/ui/act", body, sent))


def view() -> CurrentView:
    return CurrentView(lambda: Node("node-1", "1.0"), lambda: [source(look())])


def herder() -> MemoryHerder:
    made = MemoryHerder()
    made.put(SOURCE, {**CONFIG, "name": SOURCE})
    return made


@pytest.fixture(scope="module")
def leading() -> MemoryHerder:
    return herder()


@pytest.fixture(scope="module")
def page(leading: MemoryHerder) -> Iterator[Page]:
    with serving(leading, settings(ui_actions="true"), view=view()) as url:
        yield Page(url)


def state(of: MemoryHerder) -> TargetState:
    return of._states[SOURCE]


def test_a_connector_is_paused_resumed_stopped_and_restarted(leading: MemoryHerder, page: Page) -> None:
    assert (
        b'href="act?flow=a-%3Eb&amp;name=MirrorSourceConnector&amp;action=stop"'
        in page.get("connectors", flow=FLOW).body
    )
    for action, wanted in (
        ("pause", TargetState.PAUSED),
        ("resume", TargetState.RUNNING),
        ("stop", TargetState.STOPPED),
        ("resume", TargetState.RUNNING),
        ("restart", TargetState.RUNNING),
    ):
        answer = page.send({**page.fields(action), "typed": SOURCE})
        assert (answer.status, answer.headers["Location"]) == (303, "connectors?flow=a-%3Eb"), action
        assert state(leading) is wanted
        said = f"{action}, asked for by a client that need not log in from 127.0.0.1"
        assert leading.notes[-1] == (SOURCE, said)


def test_what_stops_data_wants_the_name_typed(leading: MemoryHerder, page: Page) -> None:
    for action in ("pause", "stop"):
        for typed in ("", "mirrorsourceconnector", f"{SOURCE} "):
            answer = page.send({**page.fields(action), "typed": typed})
            assert (answer.status, b"is not the connector" in answer.body) == (400, True)
    assert state(leading) is TargetState.RUNNING


def test_a_form_is_good_once_and_for_what_it_was_made_for(leading: MemoryHerder, page: Page) -> None:
    fields = page.fields("restart")
    assert page.send(fields).status == 303
    count = len(leading.notes)
    assert page.send(fields).status == 409  # replayed
    assert page.send({**page.fields("restart"), "token": "forged"}).status == 409
    other = {**page.fields("restart"), "action": "stop", "typed": SOURCE}
    assert page.send(other).status == 409
    assert page.send({**page.fields("restart"), "name": "other"}).status == 409
    assert len(leading.notes) == count


def test_forms_of_other_sites_are_refused(leading: MemoryHerder, page: Page) -> None:
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"},
    ):
        answer = page.send({**page.fields("stop"), "typed": SOURCE}, **headers)
        assert answer.status == 403, headers
    page.origin = {}
    assert page.send({**page.fields("stop"), "typed": SOURCE}).status == 403
    assert page.send({**page.fields("stop"), "typed": SOURCE}, Sec_Fetch_Site="same-site").status == 403
    assert page.send({**page.fields("restart")}, Sec_Fetch_Site="same-origin").status == 303
    page.origin = {"Origin": page.url}
    assert state(leading) is TargetState.RUNNING


def test_what_is_no_form_is_refused(page: Page) -> None:
    assert page.send({"action": "explode"}).status == 404
    assert page.get("act", flow=FLOW, name=SOURCE, action="delete").status == 404
    assert page.send({"action": "stop", "typed": "x" * 20_000}).status == 413
    missing = page.send({**page.fields("resume", "missing")})
    assert (missing.status, b"Unknown connector missing" in missing.body) == (404, True)
    for name in HOSTILE:
        assert b"<img" not in page.get("act", flow=name, name=name, action="stop").body
        assert page.fields("stop", name)["name"] == name


def test_without_logins_nothing_can_be_done_unless_it_is_wanted() -> None:
    with serving(herder(), view=view()) as url:
        page = Page(url)
        assert b"act?" not in page.get("connectors", flow=FLOW).body
        assert page.get("act", flow=FLOW, name=SOURCE, action="stop").status == 403
        assert page.send({"action": "restart", "name": SOURCE}).status == 403


def test_actions_without_logins_need_listeners_of_this_machine() -> None:
    for listeners in ("http://:8083", "http://10.0.0.1:8083", "http://localhost:8083,http://0.0.0.0:8084"):
        with pytest.raises(ConfigError, match=r"ui\.actions.*needs listeners of this machine alone"):
            rest_settings(Properties({"listeners": listeners, "ui.actions": "true"}))


def test_where_users_log_in_administrators_may_and_followers_pass_it_on(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ops=right\nmia=s\\u00fc\\u00df\n")
    (tmp_path / "jaas.conf").write_text(f'KafkaConnect {{ {MODULE} required file="{tmp_path}/users"; }};')
    rest = settings(
        rest_extension_classes=BASIC_AUTHENTICATION[0],
        java_security_auth_login_config=str(tmp_path / "jaas.conf"),
        rest_admin_users="ops",
    )
    leading = herder()
    with serving(leading, rest, view=view()) as leader:
        away = MemoryHerder(leads=False, leader_url=leader)

        def looks() -> list[ConnectorLook]:
            raise NotLeaderError(leader)

        with serving(away, rest, view=CurrentView(lambda: Node("node-2", "1.0"), looks)) as follower:
            page = Page(follower, OPS)
            assert b"act?" in page.get("connectors", flow=FLOW).body
            assert page.send({**page.fields("stop"), "typed": SOURCE}).status == 303
            assert state(leading) is TargetState.STOPPED
            assert leading.notes == [(SOURCE, "stop, asked for by 'ops' from 127.0.0.1")]
            missing = page.send({**page.fields("resume", "missing")})
            assert (missing.status, b"Unknown connector missing" in missing.body) == (404, True)
            viewer = Page(follower, MIA)
            assert b"act?" not in viewer.get("connectors", flow=FLOW).body
            assert viewer.get("act", flow=FLOW, name=SOURCE, action="stop").status == 403
            fields = page.fields("resume")
            assert viewer.send(fields).status == 403
            assert Page(follower).send(fields).status == 401


def test_a_plan_is_made_when_it_is_asked_for(leading: MemoryHerder, page: Page) -> None:
    leading.planned = to_json(PLAN)
    answer = page.get("plan", flow=FLOW)
    assert (answer.status, b"+ create 2 topics on eu" in answer.body) == (200, True)
    assert page.get("plan", flow=FLOW, name=SOURCE).status == 200
    for parameters in ({"flow": "x->y"}, {"flow": FLOW, "name": "other"}, {}):
        assert page.get("plan", **parameters).status == 404
    assert b'href="plan?flow=a-%3Eb"' in page.get("flow", flow=FLOW).body


def test_a_follower_has_the_leaders_plan(leading: MemoryHerder, page: Page) -> None:
    leading.planned = to_json(PLAN)
    away = MemoryHerder(leads=False, leader_url=page.url)

    def looks() -> list[ConnectorLook]:
        raise NotLeaderError(page.url)

    with serving(away, view=CurrentView(lambda: Node("node-2", "1.0"), looks)) as follower:
        answer = Page(follower).get("plan", flow=FLOW)
        assert (answer.status, b"+ create 2 topics on eu" in answer.body) == (200, True)
