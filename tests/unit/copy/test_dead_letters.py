import pytest

from sparkmirror.copy.dead_letters import is_about_the_batch, with_fix
from sparkmirror.kafka.wire.error_codes import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_for,
)


@pytest.mark.parametrize("code", [MESSAGE_TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP, CORRUPT_MESSAGE])
def test_errors_about_contents_or_size_are_about_the_batch(code: int) -> None:
    assert is_about_the_batch(error_for(code, "produce"))


@pytest.mark.parametrize(
    "code", [TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_SERVER_ERROR, 0]
)
def test_errors_that_a_user_or_time_may_fix_are_not_about_the_batch(code: int) -> None:
    """Were it left out, a missing right would cost every record."""
    assert not is_about_the_batch(error_for(code, "produce"))


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (
            MESSAGE_TOO_LARGE,
            "; raise max.message.bytes of A.t on B, or on.bad.batch=skip leaves it out",
        ),
        (CORRUPT_MESSAGE, "; on.bad.batch=skip leaves it out"),
    ],
)
def test_the_error_names_the_fix(code: int, advice: str) -> None:
    assert str(with_fix(error_for(code, "produce to A.t-0"), "A.t", "B")).endswith(advice)
