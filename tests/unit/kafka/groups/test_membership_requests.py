"""Errors made of a group coordinator's error codes."""

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, KafkaError, RetriableError
from sparkmirror.domain.leader_election import GroupOptions
from sparkmirror.kafka.groups.membership_requests import (
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    OTHER_SESSIONS,
    HeldGroup,
    group_error,
)
from sparkmirror.kafka.wire.error_codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_AUTHORIZATION_FAILED,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
)

SETTINGS = ConnectionSettings((("localhost", 9092),))


@pytest.mark.parametrize(
    ("code", "error_class", "words"),
    [
        (INCONSISTENT_GROUP_PROTOCOL, KafkaError, "Stop them first, or choose another group.id"),
        (GROUP_AUTHORIZATION_FAILED, AuthorizationError, "--operation Read --group mirrors"),
        (INVALID_SESSION_TIMEOUT, KafkaError, "group.min.session.timeout.ms"),
        (GROUP_MAX_SIZE_REACHED, KafkaError, "group.max.size"),
        (COORDINATOR_LOAD_IN_PROGRESS, RetriableError, "COORDINATOR_LOAD_IN_PROGRESS"),
        (NOT_COORDINATOR, RetriableError, "NOT_COORDINATOR"),
        (UNKNOWN_SERVER_ERROR, RetriableError, "UNKNOWN"),
    ],
)
def test_a_refusal_says_which_group_and_what_to_do(
    code: int, error_class: type[KafkaError], words: str
) -> None:
    error = group_error(code, "mirrors", "JoinGroup", settings=SETTINGS)
    assert type(error) is error_class
    assert error.code == code
    assert str(error).startswith("group mirrors: JoinGroup: ")
    assert words in str(error)


def test_members_of_another_kind_are_named() -> None:
    error = group_error(
        INCONSISTENT_GROUP_PROTOCOL,
        "mirrors",
        "JoinGroup",
        settings=SETTINGS,
        held_by="connect-1 at 10.0.0.7",
    )
    assert "the group has members of another kind (connect-1 at 10.0.0.7): workers of Java's" in str(error)


def test_members_of_another_kind_are_waited_for_until_a_session_and_a_rebalance_have_ended() -> None:
    held, limit_s = HeldGroup(GroupOptions("mirrors", session_timeout_s=10)), OTHER_SESSIONS * 10
    for now in (5.0, 5.0 + limit_s - 0.1):
        with pytest.raises(
            RetriableError, match=r"members of another kind \(java-1\).*until its session ends"
        ):
            held.check("java-1", now)
    held.check("java-1", 5.0 + limit_s)
    held.end()
    with pytest.raises(RetriableError):
        held.check("java-1", 100.0)
