"""The page of a flow's plan, and the notes of who has asked for a change of a connector."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from sparkmirror.connect.rest.login_settings import BASIC_AUTHENTICATION
from sparkmirror.domain.connect import NotLeaderError
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.plan.flow_plan_json import to_json
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.support.flow_plans import PLAN
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import SOURCE, look, source
from tests.support.rest_logins import CONFIG, MODULE, OPS
from tests.support.rest_requests import Answer, Request, ask
from tests.support.rest_serving import serving, settings

FLOW: Final = "a->b"


@pytest.fixture(scope="module")
def leader() -> Iterator[str]:
    herder = MemoryHerder()
    herder.put(SOURCE, {**CONFIG, "name": SOURCE})
    herder.planned = to_json(PLAN)
    view = CurrentView(lambda: Node("node-1", "1.0"), lambda: [source(look())])
    with serving(herder, settings(), view=view) as url:
        yield url


def plan_of(url: str, **query: str) -> Answer:
    return ask(url, Request("GET", f"/ui/plan?{urlencode(query)}"))


def test_a_plan_is_made_when_it_is_asked_for(leader: str) -> None:
    answer = plan_of(leader, flow=FLOW)
    assert (answer.status, b"+ create 2 topics on eu" in answer.body) == (200, True)
    assert plan_of(leader, flow=FLOW, name=SOURCE).status == 200
    for parameters in ({"flow": "x->y"}, {"flow": FLOW, "name": "other"}, {}):
        assert plan_of(leader, **parameters).status == 404
    assert b'href="plan?flow=a-%3Eb"' in ask(leader, Request("GET", "/ui/flow?flow=a-%3Eb")).body


def test_a_follower_has_the_leaders_plan(leader: str) -> None:
    away = MemoryHerder(leads=False, leader_url=leader)

    def looks() -> list[ConnectorLook]:
        raise NotLeaderError(leader)

    with serving(away, view=CurrentView(lambda: Node("node-2", "1.0"), looks)) as follower:
        answer = plan_of(follower, flow=FLOW)
        assert (answer.status, b"+ create 2 topics on eu" in answer.body) == (200, True)


CHANGES: Final = (
    ("PUT", "/config", json.dumps({**CONFIG, "name": SOURCE}).encode(), "creation"),
    ("PATCH", "/config", b'{"topics": "other"}', "change of its config"),
    ("PUT", "/pause", None, "pause"),
    ("PUT", "/resume", None, "resume"),
    ("PUT", "/stop", None, "stop"),
    ("POST", "/restart", None, "restart"),
    ("DELETE", "", None, "deletion"),
)


def test_who_changes_a_connector_by_the_rest_api_is_told(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ops=right\n")
    (tmp_path / "jaas.conf").write_text(f'KafkaConnect {{ {MODULE} required file="{tmp_path}/users"; }};')
    rest = settings(
        rest_extension_classes=BASIC_AUTHENTICATION[0],
        java_security_auth_login_config=str(tmp_path / "jaas.conf"),
        rest_admin_users="ops",
    )
    for served, login, user in ((settings(), None, "a client that need not log in"), (rest, OPS, "'ops'")):
        changed = MemoryHerder()
        headers = {"Content-Type": "application/json"}
        if login is not None:
            headers["Authorization"] = login
        with serving(changed, served) as url:
            for verb, path, body, _ in CHANGES:
                answer = ask(url, Request(verb, f"/connectors/{SOURCE}{path}", body, headers))
                assert answer.status in (200, 201, 202, 204), (verb, path)
        asked = [(SOURCE, f"{action}, asked for by {user} from 127.0.0.1") for *_, action in CHANGES]
        assert changed.notes == asked
