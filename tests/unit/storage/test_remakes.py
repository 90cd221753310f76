import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import GroupId
from sparkmirror.storage.promotions import Promotion, Stage, parse_promotion, promotion_record
from sparkmirror.storage.remakes import Remake, Remembered, parse_remake, remake_record

GROUPS = (Remembered(GroupId("größe"), 11, 7, "of its own"), Remembered(GroupId("b"), 0, 0, ""))
REMAKE = Remake(b"o" * 16, 12, {"retention.ms": "1"}, {0: 5, 11: 9}, GROUPS)
OWNER = "mm2-offsets.A.internal-größe"


@pytest.mark.parametrize("remake", [REMAKE, Remake(b"", 1, {}, {}, ()), None])
def test_what_was_written_is_read_back(remake: Remake | None) -> None:
    assert parse_remake(remake_record(OWNER, "42", remake)) == (OWNER, "42", remake)


def test_what_cannot_be_read_is_none() -> None:
    record = remake_record(OWNER, "orders", REMAKE)
    for value in (b"{}", b"x", b'{"old":"","partitions":1,"configs":{},"ends":{},"groups":[[1]]}'):
        assert parse_remake(record._replace(value=value)) == (OWNER, "orders", None)
    assert parse_remake(LogRecord(None, b"{}")) is None


def test_it_shares_a_topic_with_promotions() -> None:
    assert parse_promotion(remake_record(OWNER, "42", REMAKE)) is None
    assert parse_remake(promotion_record(OWNER, "42", Promotion(Stage.STOPPING, 1, b"", {}))) is None
