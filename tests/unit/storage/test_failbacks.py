import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import UNKNOWN_LOGS, LogIdentity
from sparkmirror.storage.failbacks import Failback, failback_record, parse_failback
from sparkmirror.storage.promotions import Parting, Promotion, Stage, parse_promotion, promotion_record

LOGS = LogIdentity(source_id=b"s" * 16, target_id=b"t" * 16)
ENDED = Promotion(Stage.PROMOTED, 12, b"\x00" * 16, {0: Parting(7, None)})
FAILBACK = Failback(99, 100, LOGS, {0: 20, 11: 3}, ENDED)
OWNER = "mm2-offsets.B.internal-größe"


@pytest.mark.parametrize("failback", [FAILBACK, Failback(1, 2, UNKNOWN_LOGS, {}, deleted_id=b"d" * 16), None])
def test_what_was_written_is_read_back(failback: Failback | None) -> None:
    assert parse_failback(failback_record(OWNER, "42", failback)) == (OWNER, "42", failback)


def test_what_cannot_be_read_accepts_nothing() -> None:
    record = failback_record(OWNER, "orders", FAILBACK)
    for value in (b"{}", b"x", b'{"answers":"1"}'):
        assert parse_failback(record._replace(value=value)) == (OWNER, "orders", None)
    assert parse_failback(LogRecord(None, b"{}")) is None


def test_it_shares_a_topic_with_promotions() -> None:
    assert parse_promotion(failback_record(OWNER, "42", FAILBACK)) is None
    assert parse_failback(promotion_record(OWNER, "42", ENDED)) is None


@pytest.mark.parametrize(
    ("logs", "accepted"),
    [
        (LOGS, 20),
        (UNKNOWN_LOGS, 20),
        (LOGS._replace(target_id=b"n" * 16), 0),
        (LOGS._replace(source_id=b"n" * 16), 0),
    ],
)
def test_only_the_logs_of_that_time_are_accepted(logs: LogIdentity, accepted: int) -> None:
    assert FAILBACK.accepted(0, logs) == accepted
    assert FAILBACK.accepted(5, logs) == 0, "a partition that was added since"
