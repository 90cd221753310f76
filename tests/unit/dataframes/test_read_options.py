"""Options of a data frame that reads are those of Spark's Kafka source, in any case; others are refused."""

from collections.abc import Mapping
from typing import Final

import pytest

from sparkmirror.dataframes.offset_limits import AtOffsets, AtTime, AtTimes, Bound
from sparkmirror.dataframes.read_options import ReadOptions, read_options
from sparkmirror.domain.client_settings import SecurityProtocol
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import TopicPartition

ORDERS: Final = TopicPartition("orders", 0)


def options(more: Mapping[str, str] | None = None, **named: str) -> ReadOptions:
    base = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}
    return read_options({**base, **named, **(more or {})})


def test_defaults_are_those_of_spark() -> None:
    found = options()
    assert found.topics == ("orders",)
    assert found.batch_limits() == (Bound.EARLIEST, Bound.LATEST)
    assert found.stream_start() is Bound.LATEST
    assert found.fails_on_data_loss
    assert not found.includes_headers
    assert found.trigger_delay_max_s == 900
    assert not found.consumer.read_committed


def test_names_are_case_insensitive_and_values_are_not() -> None:
    found = read_options(
        {"KAFKA.bootstrap.Servers": "Broker:9092", "SUBSCRIBE": "Orders, ,b", "STARTINGoffsets": "Earliest"}
    )
    assert found.topics == ("Orders", "b")
    assert found.stream_start() is Bound.EARLIEST
    assert found.consumer.connection.bootstrap_servers == (("Broker", 9092),)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": '{"orders":{"0":23}}'}, AtOffsets({ORDERS: 23})),
        ({"startingOffsets": '{"orders":{"0":-2}}'}, AtOffsets({ORDERS: -2})),
        (
            {"startingOffsetsByTimestamp": '{"orders":{"0":1700000000000}}'},
            AtTimes({ORDERS: 1_700_000_000_000}),
        ),
        ({"startingTimestamp": "1700000000000"}, AtTime(1_700_000_000_000)),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestamp": "{}", "startingOffsets": "earliest"},
            AtTime(5),
        ),
        ({"startingOffsetsByTimestamp": "{}", "startingOffsets": "earliest"}, AtTimes({})),
    ],
)
def test_starting_offsets_in_sparks_order(given: dict[str, str], expected: object) -> None:
    assert options(given).stream_start() == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("100", 0.1), ("500ms", 0.5), ("30s", 30), ("15m", 900), ("2h", 7200), ("5min", 300)],
)
def test_trigger_delay_is_a_time_of_spark(text: str, seconds: float) -> None:
    assert options({"maxTriggerDelay": text}).trigger_delay_max_s == pytest.approx(seconds)


def test_kafka_options_are_read_as_a_mirrors() -> None:
    found = options(
        {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": (
                'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
            ),
            "kafka.isolation.level": "read_committed",
            "kafka.max.partition.fetch.bytes": "1000",
        }
    )
    assert found.consumer.connection.security_protocol is SecurityProtocol.SASL_PLAINTEXT
    assert found.consumer.read_committed
    assert found.consumer.partition_fetch_bytes_max == 1000


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"startingOffset": "earliest"}, "startingoffset: .*startingOffsets exists"),
        ({"kafka.securty.protocol": "SSL"}, "kafka.securty.protocol: .*kafka.security.protocol exists"),
        ({"path": "orders"}, "path: the sparkmirror source has no such option"),
        ({"assign": "{}"}, "subscribe and assign: only one"),
        ({"subscribe": " , "}, "subscribe: names no topic"),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset: .*startingOffsets"),
        ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer"),
        ({"kafka.value.deserializer": "x"}, "kafka.value.deserializer"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit"),
        ({"kafka.interceptor.classes": "x"}, "kafka.interceptor.classes"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"minPartitions": "0"}, "minPartitions: must be positive"),
        ({"minPartitions": "x"}, "minPartitions: Not a number"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "minOffsetsPerTrigger.*maxOffsetsPerTrigger",
        ),
        ({"failOnDataLoss": "no"}, "failOnDataLoss"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"startingOffsets": "5"}, "startingOffsets.*expected JSON"),
        ({"startingOffsets": '{"orders":{"0":"1"}}'}, "startingOffsets.*expected JSON"),
        ({"startingOffsets": '{"orders":[0]}'}, "startingOffsets.*expected JSON"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "startingOffsetsByTimestampStrategy"),
    ],
)
def test_options_that_cannot_be_used_are_named(given: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        options(given)


def test_a_selection_is_needed() -> None:
    with pytest.raises(ConfigError, match="subscribe or subscribePattern or assign"):
        read_options({"kafka.bootstrap.servers": "b:1"})
    with pytest.raises(ConfigError, match=r"assign.*expected JSON"):
        read_options({"kafka.bootstrap.servers": "b:1", "assign": "orders"})


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"orders":{"0":-1}}'},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"orders":{"0":-2}}'},
        {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"0":4}}'},
        {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"1":9}}'},
        {
            "startingOffsetsByTimestamp": '{"orders":{"0":5}}',
            "endingOffsetsByTimestamp": '{"orders":{"0":4}}',
        },
    ],
)
def test_limits_that_make_no_sense_in_a_batch_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        options(given).batch_limits()


@pytest.mark.parametrize(
    "given",
    [
        {"endingOffsets": "latest"},
        {"endingTimestamp": "5"},
        {"endingOffsetsByTimestamp": '{"orders":{"0":5}}'},
    ],
)
def test_a_stream_has_no_end(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="endingOffsets"):
        options(given).stream_start()
