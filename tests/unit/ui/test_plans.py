"""Plans on pages: the lines of `sparkmirror plan`, one plan at a time, and errors that are said."""

import threading
from http import HTTPStatus

import pytest

from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.report import flow_lines
from sparkmirror.ui.html import plan_page
from sparkmirror.ui.page_looks import PageLook
from sparkmirror.ui.plans import Plans, plans_of
from tests.support.flow_plans import PLAN
from tests.support.mirror_looks import HOSTILE


def test_a_page_has_the_lines_that_the_command_prints() -> None:
    plan = Plans(lambda _flow, _connector: PLAN).lines("us->eu", "msc")
    assert list(plan.lines) == list(flow_lines(PLAN))
    page = plan_page(PageLook("plan", "us->eu"), plan, 1_700_000_000.0)
    for text in (
        "Plan: 2 to create, 1 to alter, 1 to delete",
        "+ create 2 topics on eu",
        "2023-11-14 22:13:20",
    ):
        assert text in page
    assert '<p class="blocks">' in page
    assert "hx-sse:connect" not in page, "it is not made again each second"


def test_names_in_a_plan_are_shown_and_never_run() -> None:
    for name in HOSTILE:
        plan = Plans(lambda _flow, _connector: PLAN).lines("us->eu", "msc")
        page = plan_page(PageLook("plan", name), plan._replace(lines=[f"  + {name}"]), 0.0)
        assert "<img" not in page
        assert "<script>alert" not in page


def test_one_plan_is_made_at_a_time() -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(_flow: str, _connector: str) -> FlowPlan:
        began.set()
        assert may_end.wait(30)
        return PLAN

    plans = Plans(slow)
    first = threading.Thread(target=plans.lines, args=("us->eu", "msc"))
    first.start()
    assert began.wait(30)
    with pytest.raises(ConnectError, match="Another plan is being made"):
        plans.lines("us->eu", "msc")
    may_end.set()
    first.join()
    assert plans.lines("us->eu", "msc").summary.startswith("Plan: ")


def test_why_there_is_no_plan_is_said() -> None:
    def unreachable(_flow: str, _connector: str) -> FlowPlan:
        raise DisconnectedError("us: no broker answers")

    plans = Plans(unreachable)
    for _ in range(2):
        with pytest.raises(ConnectError, match="There is no plan: us: no broker answers") as raised:
            plans.lines("us->eu", "msc")
        assert raised.value.status == HTTPStatus.BAD_GATEWAY
    with pytest.raises(ConnectError, match="There is no flow us->eu"):
        plans_of([]).lines("us->eu", "")
