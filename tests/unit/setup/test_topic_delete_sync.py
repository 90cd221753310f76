import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.setup.topic_delete_plan import Missed
from sparkmirror.setup.topic_delete_sync import missed_record, parse_missed
from sparkmirror.storage.progress import parse, parse_order

MIRROR = ConnectorName("mirror")


def test_records_come_back_as_they_were_written() -> None:
    for missed in (Missed(1.5, 20.25), None):
        assert parse_missed(missed_record(MIRROR, "orders", missed)) == (MIRROR, "orders", missed)


def test_records_of_missed_topics_are_ignored_by_other_parsers() -> None:
    record = missed_record(MIRROR, "orders", Missed(1, 2))
    assert (parse(record), parse_order(record)) == (None, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"{", b"{}"),
        (b'["progress","mirror","orders",0]', b"{}"),
        (b'["missed","mirror"]', b"{}"),
        (b'["missed","mirror","orders"]', b'{"since":1}'),
        (b'["missed","mirror","orders"]', b'{"since":"x","seen_missing":1}'),
        (b'["missed","mirror","orders"]', b"["),
        (b'["missed","mirror","orders"]', b"7"),
    ],
)
def test_other_records_are_skipped(key: bytes | None, value: bytes) -> None:
    assert parse_missed(LogRecord(key, value)) is None
