import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.storage.written_offsets import WrittenOffset, parse_written, restored_record, written_record

GROUP = GroupId("größe")
PLACE = TopicPartition("us.orders", 3)


@pytest.mark.parametrize("earlier", [None, 0, 90])
def test_what_was_written_is_read_back(earlier: int | None) -> None:
    offset = WrittenOffset(PLACE, 97, earlier, "the group's own")
    assert parse_written(written_record(GROUP, offset)) == (GROUP, PLACE, offset)


def test_what_was_taken_back_is_a_tombstone_of_the_same_key() -> None:
    restored = restored_record(GROUP, PLACE)
    assert restored.key == written_record(GROUP, WrittenOffset(PLACE, 97, None)).key
    assert restored.value is None
    assert parse_written(restored) == (GROUP, PLACE, None)


@pytest.mark.parametrize(
    "record", [LogRecord(None, b"{}"), LogRecord(b"x", b"{}"), LogRecord(b'["g","t",0]', b"{}")]
)
def test_what_is_none_of_ours_is_left_out(record: LogRecord) -> None:
    assert parse_written(record) is None
