"""Records of attempts: read as they were written, by the connector and partition they belong to, in order."""

from collections.abc import Sequence
from dataclasses import replace

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.ids import LogIdentity, TopicPartition
from sparkmirror.offsets.sequence_ends import SequenceEnd, encode_ends
from sparkmirror.storage.attempts import (
    Acknowledged,
    Attempt,
    KnownAttempts,
    Stage,
    attempt_record,
    deletion_record,
)

OWNER = "offsets-MirrorSourceConnector"
ORDERS = TopicPartition("orders", 3)
CLAIM = Attempt(ProducerId(7, 4), 0)
OPEN = Attempt(ProducerId(7, 5), 0, Stage.OPEN, 1000, (SequenceEnd(0, 900, 2), SequenceEnd(5, 920, 3)))


def known(records: Sequence[LogRecord]) -> list[Attempt]:
    attempts = KnownAttempts(OWNER)
    attempts.add(records)
    return attempts.of(ORDERS)


def test_attempts_are_read_as_written_and_in_their_order() -> None:
    other_id = replace(CLAIM, producer=ProducerId(3, 0), generation=1)
    logs = LogIdentity(source_id=b"\x01" * 16, target_id=b"\x02" * 16)
    further = replace(OPEN, acknowledged=Acknowledged(7, 1009), logs=logs, positions_id=b"\x03" * 16)
    records = [attempt_record(OWNER, ORDERS, each) for each in (other_id, further, CLAIM)]
    assert known(records) == [CLAIM, further, other_id]


def test_the_newest_record_of_an_attempt_counts_and_deleted_ones_do_not() -> None:
    closed = replace(OPEN, stage=Stage.CLOSED)
    records = [
        attempt_record(OWNER, ORDERS, CLAIM),
        attempt_record(OWNER, ORDERS, OPEN),
        attempt_record(OWNER, ORDERS, closed),
        deletion_record(OWNER, ORDERS, CLAIM.producer),
    ]
    assert known(records) == [closed]
    assert not closed.may_write


def test_what_is_read_later_changes_what_was_known() -> None:
    attempts = KnownAttempts(OWNER)
    attempts.add([attempt_record(OWNER, ORDERS, CLAIM)])
    attempts.add([attempt_record(OWNER, ORDERS, OPEN)])
    assert attempts.of(ORDERS) == [CLAIM, OPEN]
    closed = replace(OPEN, stage=Stage.CLOSED)
    attempts.add([attempt_record(OWNER, ORDERS, closed), deletion_record(OWNER, ORDERS, CLAIM.producer)])
    assert attempts.of(ORDERS) == [closed]


def test_attempts_of_other_owners_and_partitions_are_not_read() -> None:
    records = [
        attempt_record("another", ORDERS, OPEN),
        attempt_record(OWNER, TopicPartition("orders", 4), OPEN),
        attempt_record(OWNER, ORDERS, OPEN)._replace(key=b"{"),
    ]
    assert known(records) == []


def test_a_value_that_cannot_be_read_is_a_claim() -> None:
    record = attempt_record(OWNER, ORDERS, OPEN)._replace(value=b'{"state":"later"}')
    (found,) = known([record])
    assert found == Attempt(OPEN.producer, 0)
    assert found.may_write


def test_records_have_the_format_of_the_versions_before() -> None:
    value = b'{"state":"open","generation":0,"offset":1000,"ends":[[0,5],[900,20],[2,1]]}'
    assert attempt_record(OWNER, ORDERS, OPEN).value == value
    assert attempt_record(OWNER, ORDERS, OPEN, encode_ends(OPEN.ends)).value == value
    claim = attempt_record(OWNER, ORDERS, CLAIM)._replace(
        value=b'{"state":"claimed","generation":0,"offset":0,"ends":[]}'
    )
    assert known([claim]) == [CLAIM]
