"""Settings of transactional copying, and settings that contradict it."""

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.config.transaction_settings import (
    TransactionSettings,
    transaction_settings,
    transactional_id,
)
from sparkmirror.config.worker_settings import worker_settings
from sparkmirror.domain.errors import ConfigError

WORKER = {
    "bootstrap.servers": "b:1",
    "group.id": "A-mm2",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "key.converter": "x",
    "value.converter": "x",
}
ENABLED = {"exactly.once.source.support": "enabled"}
INTERVAL = {"transaction.boundary": "Interval"}


def settings(worker: dict[str, str], connector: dict[str, str]) -> TransactionSettings | None:
    properties = Properties(WORKER | worker)
    return transaction_settings(worker_settings(properties), properties, Properties(connector))


@pytest.mark.parametrize(
    "support", [{}, *({"exactly.once.source.support": value} for value in ("disabled", "Preparing"))]
)
def test_without_the_worker_there_are_none(support: dict[str, str]) -> None:
    assert settings(support, INTERVAL) is None
    assert settings(support | {"producer.acks": "1"}, {"exactly.once.support": "requested"}) is None


@pytest.mark.parametrize(
    ("worker", "connector", "expected"),
    [
        ({}, {}, TransactionSettings(None, 60.0)),
        (
            {"exactly.once.source.support": "ENABLED"},
            {"exactly.once.support": "REQUIRED"},
            TransactionSettings(None, 60.0),
        ),
        ({"producer.transaction.timeout.ms": "5000"}, {}, TransactionSettings(None, 5.0)),
        (
            {"producer.transaction.timeout.ms": "5000"},
            {"producer.override.transaction.timeout.ms": "700"},
            TransactionSettings(None, 0.7),
        ),
        ({}, INTERVAL | {"transaction.boundary.interval.ms": "1500"}, TransactionSettings(1.5, 60.0)),
        ({"offset.flush.interval.ms": "2000"}, INTERVAL, TransactionSettings(2.0, 60.0)),
        ({}, INTERVAL, TransactionSettings(30.0, 60.0)),
        ({}, {"producer.override.enable.idempotence": "true"}, TransactionSettings(None, 60.0)),
    ],
    ids=str,
)
def test_transactions_last_as_configured(
    worker: dict[str, str], connector: dict[str, str], expected: TransactionSettings
) -> None:
    assert settings(ENABLED | worker, connector) == expected


@pytest.mark.parametrize(
    ("worker", "connector", "reason"),
    [
        (
            {},
            {"exactly.once.support": "Required"},
            (
                "Invalid value Required for configuration exactly.once.support: "
                "This worker does not have exactly-once source support enabled."
            ),
        ),
        (
            {},
            {"transaction.boundary": "CONNECTOR"},
            (
                "Invalid value CONNECTOR for configuration transaction.boundary: "
                "The connector does not support connector-defined transaction boundaries"
            ),
        ),
        (
            ENABLED | {"producer.enable.idempotence": "false"},
            {},
            "Invalid value false for configuration producer.enable.idempotence: contradicts",
        ),
        (
            ENABLED,
            {"producer.override.acks": "1"},
            "Invalid value 1 for configuration producer.override.acks: must be all",
        ),
        (
            ENABLED,
            {"producer.override.transaction.timeout.ms": "0"},
            "Invalid value 0 for configuration producer.override.transaction.timeout.ms: must be at least 1",
        ),
        (
            ENABLED,
            INTERVAL | {"transaction.boundary.interval.ms": "60000"},
            (
                "Invalid value 60000 for configuration transaction.boundary.interval.ms: "
                "must be below the producer's transaction.timeout.ms, 60000"
            ),
        ),
    ],
    ids=str,
)
def test_an_impossible_setting_is_refused_with_key_and_value(
    worker: dict[str, str], connector: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(worker, connector)
    assert str(caught.value).startswith(reason)


def test_tasks_have_the_ids_that_connect_gives_them() -> None:
    assert transactional_id("A-mm2", " MirrorSourceConnector ", 3) == "A-mm2-MirrorSourceConnector-3"
