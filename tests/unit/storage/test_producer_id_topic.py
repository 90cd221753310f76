"""Records that store the source cluster of a producer id."""

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.record_batch import NO_PRODUCER_ID
from sparkmirror.domain.ids import Alias
from sparkmirror.storage.producer_id_topic import parse_producer_id, producer_id_record


def test_bytes() -> None:
    record = producer_id_record(4711, "eKTYYEi2TwS9cZH1-Nj2Jw", Alias("us-west"))
    assert record == LogRecord(b"[4711]", b'{"cluster":"eKTYYEi2TwS9cZH1-Nj2Jw","alias":"us-west"}')
    assert parse_producer_id(record) == (4711, "eKTYYEi2TwS9cZH1-Nj2Jw")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"[4711]", None),
        (b"4711", b'{"cluster":"c"}'),
        (b'["4711"]', b'{"cluster":"c"}'),
        (b"[4711]", b'{"cluster":1}'),
        (b"\xff", b"{"),
    ],
)
def test_anything_else_names_no_id(key: bytes | None, value: bytes | None) -> None:
    assert parse_producer_id(LogRecord(key, value)) == (NO_PRODUCER_ID, "")
