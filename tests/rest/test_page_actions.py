"""Forms of the pages: who may send them, that each is good once, and that they do what the REST API does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import BASIC_AUTHENTICATION
from sparkmirror.connect.rest.rest_settings import rest_settings
from sparkmirror.domain.connect import NotLeaderError, TargetState
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import ConnectorLook, VerifiedRow, VerifyLook
from sparkmirror.plan.flow_plan_json import to_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.support.flow_plans import PLAN
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import HOSTILE, SOURCE, look, source
from tests.support.page_forms import Page
from tests.support.rest_logins import CONFIG, MIA, MODULE, OPS
from tests.support.rest_requests import Request, ask
from tests.support.rest_serving import serving, settings

FLOW: Final = "a->b"


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


def test_who_changes_a_connector_by_the_rest_api_is_told_too() -> None:
    changed = MemoryHerder()
    with serving(changed, settings()) as url:
        body = json.dumps({**CONFIG, "name": SOURCE}).encode()
        sent = {"Content-Type": "application/json"}
        for request in (
            Request("PUT", f"/connectors/{SOURCE}/config", body, sent),
            Request("PATCH", f"/connectors/{SOURCE}/config", b'{"topics": "other"}', sent),
            Request("DELETE", f"/connectors/{SOURCE}"),
        ):
            assert ask(url, request).status in (200, 201, 204)
    assert changed.notes == [
        (SOURCE, f"{action}, asked for by a client that need not log in from 127.0.0.1")
        for action in ("creation", "change of its config", "deletion")
    ]


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


ROW: Final = VerifiedRow(TopicPartition("orders", 7), "different", 60, 59, 1, ["missing: key 'k<b>'"])
ENDED: Final = VerifyLook(
    1_700_000_000.0,
    1_700_000_060.0,
    "1 of 1 partitions differ, in 1 place",
    rows=[ROW],
    json='{"equal":false}',
    junit="<testsuites/>",
)


def compared(made: VerifyLook | None) -> CurrentView:
    return CurrentView(lambda: Node("node-1", "1.0"), lambda: [source(look(), verify=made)])


def test_a_comparison_is_begun_by_a_form_once_at_a_time() -> None:
    leading = herder()
    with serving(leading, settings(ui_actions="true"), view=compared(None)) as url:
        page = Page(url)
        assert b"action=verify" in page.get("verify", flow=FLOW).body
        answer = page.send(page.fields("verify"))
        assert (answer.status, answer.headers["Location"]) == (303, "verify?flow=a-%3Eb")
        assert leading.notes == [
            (SOURCE, "verify, asked for by a client that need not log in from 127.0.0.1")
        ]
        again = page.send(page.fields("verify"))
        assert (again.status, b"is being verified already" in again.body) == (409, True)
        running = ask(url, Request("GET", f"/connectors/{SOURCE}/verify")).json()
        assert (running["state"], running["ended_at_ms"], running["result"]) == ("running", None, None)
        assert ask(url, Request("POST", f"/connectors/{SOURCE}/verify")).status == 409
        assert page.get("verified", flow=FLOW).status == 404
        leading.compared = ENDED
        ended = ask(url, Request("GET", f"/connectors/{SOURCE}/verify")).json()
        assert (ended["state"], ended["result"]) == ("ended", {"equal": False})


def test_a_result_is_shown_and_can_be_kept_as_a_file() -> None:
    with serving(herder(), settings(ui_actions="true"), view=compared(ENDED)) as url:
        page = Page(url)
        shown = page.get("verify", flow=FLOW).body.decode()
        for text in (
            "Not equal",
            "1 of 1 partitions differ",
            "orders-7",
            "missing: key &#39;k&lt;b&gt;&#39;",
        ):
            assert text in shown, text
        files = {it: page.get("verified", flow=FLOW, format=it) for it in ("json", "junit")}
        assert files["json"].json() == {"equal": False}
        assert files["junit"].body == b"<testsuites/>"
        assert files["junit"].headers["Content-Disposition"] == 'attachment; filename="verify.xml"'


def test_parts_of_records_are_for_those_who_may_act() -> None:
    with serving(herder(), view=compared(ENDED)) as url:
        page = Page(url)
        shown = page.get("verify", flow=FLOW).body
        assert (b"orders-7" in shown, b"missing: key" in shown, b"verified?" in shown) == (True, False, False)
        assert page.get("verified", flow=FLOW).status == 403
