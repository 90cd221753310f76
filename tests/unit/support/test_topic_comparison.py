import confluent_kafka as confluent

from sparkmirror.domain.ids import TopicPartition
from tests.support.topic_comparison import Comparison, Difference, PartitionPair

SOURCE = TopicPartition("orders", 3)
TARGET = TopicPartition("source.orders", 3)
PAIR = PartitionPair(SOURCE, TARGET)

Headers = list[tuple[str, str | bytes | None]]


def record(
    offset: int,
    *,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: Headers | None = None,
    timestamp: tuple[int, int] = (confluent.TIMESTAMP_CREATE_TIME, 1_700_000_000_000),
) -> confluent.Message:
    return confluent.Message(
        topic="any", partition=3, offset=offset, key=key, value=value, headers=headers, timestamp=timestamp
    )


def what(source: confluent.Message, target: confluent.Message) -> str:
    difference = PAIR.compare([source], [target]).first_difference
    assert difference is not None
    return difference.what


def test_equal_records_are_counted_with_the_bytes_of_key_and_value() -> None:
    source = [record(10), record(11, key=None), record(15, value=None)]
    target = [record(0), record(1, key=None), record(2, value=None)]

    assert PAIR.compare(source, target) == Comparison(records=3, bytes=8 + 5 + 3)


def test_the_first_difference_names_partitions_and_both_offsets() -> None:
    compared = PAIR.compare(
        [record(10), record(11, key=b"a"), record(12, key=b"c")], [record(0), record(1, key=b"b"), record(2)]
    )

    assert compared.records == 1
    assert compared.first_difference == Difference(SOURCE, TARGET, 11, 1, "key b'a' became b'b'")
    assert str(compared.first_difference) == (
        "orders-3 offset 11 and source.orders-3 offset 1: key b'a' became b'b'"
    )


def test_a_record_that_the_target_lacks() -> None:
    compared = PAIR.compare([record(10), record(11)], [record(0)])

    assert str(compared.first_difference) == (
        "orders-3 offset 11 and source.orders-3 at its end: the target lacks the record"
    )


def test_a_record_too_many() -> None:
    compared = PAIR.compare([], [record(7)])

    assert compared.first_difference == Difference(
        SOURCE, TARGET, None, 7, "the target holds a record that the source does not have"
    )


def test_null_and_empty_are_not_the_same() -> None:
    assert what(record(0, key=None), record(0, key=b"")) == "key None became b''"
    assert what(record(0, value=b""), record(0, value=None)) == "value b'' became None"


def test_headers_keep_order_duplicates_and_nulls() -> None:
    headers: Headers = [("a", b"1"), ("b", None), ("a", b"2")]

    assert PAIR.compare([record(0, headers=headers)], [record(0, headers=list(headers))]).records == 1
    assert "headers" in what(record(0, headers=headers), record(0, headers=headers[::-1]))
    assert "headers" in what(record(0, headers=headers), record(0, headers=headers[:2]))
    assert "headers" in what(record(0, headers=[("b", None)]), record(0, headers=[("b", b"")]))


def test_the_timestamp_of_a_log_append_time_record_arrives_as_create_time() -> None:
    source = record(0, timestamp=(confluent.TIMESTAMP_LOG_APPEND_TIME, 5))

    assert PAIR.compare([source], [record(0, timestamp=(confluent.TIMESTAMP_CREATE_TIME, 5))]).records == 1
    assert what(source, source) == "timestamp 5 (LogAppendTime) became 5 (LogAppendTime)"


def test_a_timestamp_that_moved() -> None:
    moved = record(0, timestamp=(confluent.TIMESTAMP_CREATE_TIME, 1_700_000_000_001))

    assert what(record(0), moved) == (
        "timestamp 1700000000000 (CreateTime) became 1700000000001 (CreateTime)"
    )


def test_timestamps_that_the_target_broker_set_are_left_out() -> None:
    stamped = record(0, timestamp=(confluent.TIMESTAMP_LOG_APPEND_TIME, 1))

    assert PartitionPair(SOURCE, TARGET, timestamps=False).compare([record(0)], [stamped]).records == 1


def test_a_long_value_is_shown_around_the_first_byte_that_differs() -> None:
    before, after = b"a" * 5000 + b"b" * 500, b"a" * 5000 + b"c" * 500

    shown = what(record(0, value=before), record(0, value=after))

    assert shown.startswith("value from byte 4985 on: b'aaaaaaaaaaaaaaabbb")
    assert len(shown) < 200


def test_sums_keep_the_first_difference() -> None:
    first = Difference(SOURCE, TARGET, 1, 1, "one")
    second = Difference(SOURCE, TARGET, 2, 2, "two")

    assert Comparison(1, 10) + Comparison(2, 20, first) + Comparison(3, 30, second) == Comparison(
        6, 60, first
    )
