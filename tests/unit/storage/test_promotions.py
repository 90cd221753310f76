import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import Alias, GroupId, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.storage.promotions import (
    Parting,
    Promotion,
    Stage,
    parse_promotion,
    promoted,
    promotion_record,
    promotions_json,
)
from sparkmirror.storage.written_offsets import WrittenOffset, parse_written, written_record

PROMOTION = Promotion(Stage.PROMOTED, 12, b"\x00" * 16, {0: Parting(7, 9), 11: Parting(0, None)})
OWNER = "mm2-offsets.A.internal-größe"


@pytest.mark.parametrize("promotion", [PROMOTION, Promotion(Stage.STOPPING, 1, b"", {}), None])
def test_what_was_written_is_read_back(promotion: Promotion | None) -> None:
    assert parse_promotion(promotion_record(OWNER, "42", promotion)) == (OWNER, "42", promotion)


def test_a_value_that_cannot_be_read_keeps_the_flow_from_writing() -> None:
    record = promotion_record(OWNER, "orders", PROMOTION)._replace(value=b'{"stage":"of later versions"}')
    parsed = parse_promotion(record)
    assert parsed is not None
    found = parsed[2]
    assert found is not None
    assert found.stage is Stage.SWITCHING, "which can't be rolled back"


def test_where_both_logs_part_is_said_in_words_and_as_json() -> None:
    many = PROMOTION._replace(partings={number: Parting(10 * number, None) for number in range(5)})
    begun = Promotion(Stage.SWITCHING, 1, b"", {})
    assert str(many) == "promoted, parted at offsets 0: 0, 1: 10, 2: 20 and 2 more"
    assert str(PROMOTION) == "promoted, parted at offsets 0: 7, 11: 0"
    assert str(many._replace(partings={0: Parting(7, 9)})) == "promoted, parted at offset 7"
    assert str(begun) == begun.of(0) == "being promoted"
    assert promotions_json({"orders": PROMOTION, "b": begun}) == {
        "b": {"state": "being promoted", "partings": {}},
        "orders": {"state": "promoted", "partings": {"0": 7, "11": 0}},
    }


def test_it_shares_a_topic_with_written_offsets() -> None:
    offset = written_record(GroupId("promotion"), WrittenOffset(TopicPartition("orders", 3), 97, None))
    assert parse_promotion(offset) is None
    assert parse_written(promotion_record(OWNER, "42", PROMOTION)) is None
    assert parse_promotion(LogRecord(None, b"{}")) is None
    assert parse_promotion(LogRecord(b"x", b"{}")) is None


def test_the_topic_is_named_as_no_mirror_copies() -> None:
    assert StateTopic.MIGRATIONS.of(Alias("us-west")) == "mm2-migrations.us-west.internal"


def test_partitions_of_promoted_topics_may_not_be_written() -> None:
    orders, others = TopicPartition("orders", 1), TopicPartition("others", 1)
    found = promoted({"orders": PROMOTION}, [orders, others])
    assert set(found) == {orders}
    assert "sparkmirror promote" in str(found[orders])
