from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import GroupId, LogIdentity, TopicPartition
from sparkmirror.storage.failbacks import Failback, failback_record
from sparkmirror.storage.migrations import Begun, Migrations, Moved, migrations_of
from sparkmirror.storage.promotions import Parting, Promotion, Stage, promotion_record
from sparkmirror.storage.remakes import Remake, remake_record
from sparkmirror.storage.written_offsets import WrittenOffset, restored_record, written_record

OWNER, OTHER = "positions-connector", "positions-another"
PROMOTION: Final = Promotion(Stage.PROMOTED, 5, b"", {0: Parting(900, 900)})
FAILBACK: Final = Failback(5, 6, LogIdentity(b"", -1, b""), {0: 900})
REMAKE: Final = Remake(b"o" * 16, 1, {}, {0: 8}, ())
BILLING: Final = GroupId("billing")


def at(record: LogRecord, ms: int) -> LogRecord:
    return record._replace(timestamp_ms=ms)


def test_a_topic_holds_what_was_migrated() -> None:
    first, second = (WrittenOffset(TopicPartition("a.orders", number), 97, None) for number in range(2))
    records = [
        at(written_record(BILLING, first), 1000),
        at(written_record(BILLING, second), 3000),
        promotion_record(OWNER, "orders", PROMOTION),
        failback_record(OWNER, "payments", FAILBACK),
        at(remake_record(OWNER, "visits", REMAKE), 7000),
        promotion_record(OTHER, "clicks", PROMOTION),
        LogRecord(b"of a later version", b"{}"),
    ]
    assert migrations_of(records, OWNER) == Migrations(
        {BILLING: Moved(3000, (first, second))},
        {"orders": PROMOTION},
        {"payments": FAILBACK},
        {"visits": Begun(7000, REMAKE)},
    )


def test_what_was_rolled_back_is_not_there() -> None:
    records = [
        restored_record(BILLING, TopicPartition("a.orders", 0)),
        promotion_record(OWNER, "orders", None),
        failback_record(OWNER, "payments", None),
        remake_record(OWNER, "visits", None),
    ]
    assert migrations_of(records, OWNER) == Migrations()
