"""Errors made of a transaction coordinator's error codes."""

import pytest
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, FencedError, KafkaError, RetriableError
from sparkmirror.kafka.transactions.transaction_coordinator import TransactionCoordinator
from sparkmirror.kafka.wire.error_codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_PRODUCER_EPOCH,
    INVALID_TRANSACTION_TIMEOUT,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)

COORDINATOR = TransactionCoordinator(ConnectionSettings((("localhost", 9092),)), "mirror-1")


@pytest.mark.parametrize(
    ("code", "error_class", "words"),
    [
        (INVALID_PRODUCER_EPOCH, FencedError, "INVALID_PRODUCER_EPOCH: another producer has taken over"),
        (PRODUCER_FENCED, FencedError, "PRODUCER_FENCED: another producer has taken over"),
        (COORDINATOR_LOAD_IN_PROGRESS, RetriableError, "COORDINATOR_LOAD_IN_PROGRESS"),
        (INVALID_TRANSACTION_TIMEOUT, KafkaError, "transaction.max.timeout.ms of the brokers"),
        (
            TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            AuthorizationError,
            "; needs WRITE on transactional id mirror-1: kafka-acls.sh --bootstrap-server localhost:9092 ",
        ),
    ],
)
def test_an_error_says_whose_and_why(code: int, error_class: type[KafkaError], words: str) -> None:
    error = COORDINATOR.error_for(code, EndTxnRequest())
    assert type(error) is error_class
    assert error.code == code
    assert str(error).startswith("transactional id mirror-1: EndTxn: ")
    assert words in str(error)


def test_only_what_can_pass_is_retriable() -> None:
    codes = (COORDINATOR_LOAD_IN_PROGRESS, PRODUCER_FENCED, INVALID_TRANSACTION_TIMEOUT)
    errors = [COORDINATOR.error_for(code, InitProducerIdRequest()) for code in codes]
    assert [error.retriable for error in errors] == [True, False, False]
