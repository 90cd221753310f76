"""Names of Kafka's error codes, and whether they are retriable."""

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, KafkaError, RetriableError, TopicExistsError
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.wire import error_codes
from sparkmirror.kafka.wire.error_codes import Needed, error_for, name_of


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0, "NONE"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (10, "MESSAGE_TOO_LARGE"),
        (17, "INVALID_TOPIC_EXCEPTION"),
        (4711, "error code 4711"),
    ],
)
def test_names_are_those_of_kafkas_documentation(code: int, name: str) -> None:
    assert name_of(code) == name


@pytest.mark.parametrize(
    ("code", "kind", "retriable"),
    [
        (error_codes.NOT_LEADER_OR_FOLLOWER, RetriableError, True),
        (error_codes.REQUEST_TIMED_OUT, RetriableError, True),
        (error_codes.TOPIC_AUTHORIZATION_FAILED, AuthorizationError, False),
        (error_codes.TOPIC_ALREADY_EXISTS, TopicExistsError, False),
        (error_codes.INVALID_TIMESTAMP, KafkaError, False),
        # Retriable for a consumer; a producer's batch stays corrupt.
        (error_codes.CORRUPT_MESSAGE, KafkaError, False),
    ],
)
def test_an_error_says_whether_trying_again_can_help(
    code: int, kind: type[Exception], retriable: bool
) -> None:
    error = error_for(code, "produce to t-0", "why")
    assert type(error) is kind
    assert error.retriable is retriable
    assert error.code == code
    detail = "" if kind is AuthorizationError else " (why)"  # a broker describes its request there
    assert str(error) == f"produce to t-0: {name_of(code)}{detail}"


NEEDED = Needed(
    ConnectionSettings((("localhost", 9092),)), (Need.WRITE_TOPIC.of("t"), Need.NUMBER_RECORDS.of())
)
ADD = "kafka-acls.sh --bootstrap-server localhost:9092 --add --allow-principal User:ANONYMOUS --operation"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (error_codes.TOPIC_AUTHORIZATION_FAILED, f"; needs WRITE on topic t: {ADD} Write --topic t"),
        (
            error_codes.CLUSTER_AUTHORIZATION_FAILED,
            f"; needs IDEMPOTENT_WRITE on the cluster: {ADD} IdempotentWrite --cluster",
        ),
        (error_codes.GROUP_AUTHORIZATION_FAILED, ""),
        (error_codes.INVALID_RECORD, ""),
    ],
)
def test_a_missing_right_is_named_with_the_line_that_grants_it(code: int, words: str) -> None:
    assert str(error_for(code, "produce to t-0", needed=NEEDED)) == f"produce to t-0: {name_of(code)}{words}"
