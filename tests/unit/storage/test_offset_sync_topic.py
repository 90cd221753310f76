import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.storage.offset_sync_topic import RunSync, parse_offset_sync

SYNC = OffsetSync(TopicPartition("orders", 3), 41, 57)
KEY, VALUE = SYNC.encode_key(), SYNC.encode_value()


@pytest.mark.parametrize("run", [1, 2, 2**40])
def test_what_is_written_is_read(run: int) -> None:
    record = RunSync(SYNC, run).to_record()
    assert (record.key, record.value) == (KEY, VALUE), "the bytes are Java's whatever the run"
    assert parse_offset_sync(record) == RunSync(SYNC, run)


@pytest.mark.parametrize("value", [None, b"", b"0", b"-3", b"many", "²".encode()])
def test_invalid_run_header_is_read_as_a_run_of_one_record(value: bytes | None) -> None:
    record = LogRecord(KEY, VALUE, headers=(("sparkmirror.run", value),))
    assert parse_offset_sync(record) == RunSync(SYNC)


@pytest.mark.parametrize(("key", "value"), [(None, VALUE), (KEY, None), (KEY[:-1], VALUE), (KEY, VALUE[:-1])])
def test_what_is_no_sync_is_none(key: bytes | None, value: bytes | None) -> None:
    assert parse_offset_sync(LogRecord(key, value)) is None
