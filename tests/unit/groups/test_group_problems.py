"""The problems of groups that are logged, and those that become troubles."""

import logging

import pytest

from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.ids import Alias, Flow, GroupId
from sparkmirror.domain.troubles import TroubleWord
from sparkmirror.groups.group_problems import GroupProblems
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.storage.troubles import Troubles

LOG = flow_log(__name__, Flow(Alias("us"), Alias("eu")))
BILLING, AUDIT = GroupId("billing"), GroupId("audit")


@pytest.fixture
def troubles() -> Troubles:
    return Troubles(LOG)


@pytest.fixture
def problems(troubles: Troubles) -> GroupProblems:
    return GroupProblems(LOG, troubles)


def test_a_problem_is_logged_again_when_it_is_another_or_comes_back(
    problems: GroupProblems, caplog: pytest.LogCaptureFixture
) -> None:
    for what in ("no coordinator", "no coordinator", "no right"):
        problems.log(BILLING, what)
    problems.forget(BILLING)
    problems.log(BILLING, "no right")
    assert caplog.messages == [
        "group billing: no coordinator",
        "group billing: no right",
        "group billing: no right",
    ]


def test_a_run_names_some_groups_and_counts_the_others(
    problems: GroupProblems, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(23):
        problems.log(GroupId(f"group-{number}"), "no coordinator")
    problems.log_rest()
    problems.log(BILLING, "is a share group: left alone", logging.INFO)
    problems.log_rest()
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "and 3 more groups; `groups explain` shows why"


def test_an_error_that_may_pass_is_a_trouble_when_it_occurs_twice_in_a_row(
    problems: GroupProblems, troubles: Troubles
) -> None:
    errors = {BILLING: RetriableError("no coordinator"), AUDIT: KafkaError("no right")}
    problems.tell(TroubleWord.NOT_READ, errors)
    assert [it.what for it in troubles.now] == [AUDIT]
    problems.tell(TroubleWord.NOT_READ, errors)
    assert {it.what for it in troubles.now} == {AUDIT, BILLING}
    problems.tell(TroubleWord.NOT_READ, {})
    problems.tell(TroubleWord.NOT_READ, {BILLING: RetriableError("no coordinator")})
    assert troubles.now == []
