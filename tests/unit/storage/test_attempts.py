"""Records of attempts: read as they were written, by the connector and partition they belong to, in order."""

from dataclasses import replace

from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.offsets.sequence_ends import SequenceEnd, encode_ends
from sparkmirror.storage.attempts import (
    Acknowledged,
    Attempt,
    Stage,
    attempt_record,
    attempts_of,
    deletion_record,
)

OWNER = "offsets-MirrorSourceConnector"
ORDERS = TopicPartition("orders", 3)
CLAIM = Attempt(ProducerId(7, 4), 0)
OPEN = Attempt(ProducerId(7, 5), 0, Stage.OPEN, 1000, (SequenceEnd(0, 900, 2), SequenceEnd(5, 920, 3)))


def test_attempts_are_read_as_written_and_in_their_order() -> None:
    other_id = replace(CLAIM, producer=ProducerId(3, 0), generation=1)
    further = replace(OPEN, acknowledged=Acknowledged(7, 1009))
    records = [attempt_record(OWNER, ORDERS, each) for each in (other_id, further, CLAIM)]
    assert attempts_of(records, OWNER, [ORDERS]) == {ORDERS: [CLAIM, further, other_id]}


def test_the_newest_record_of_an_attempt_counts_and_deleted_ones_do_not() -> None:
    closed = replace(OPEN, stage=Stage.CLOSED)
    records = [
        attempt_record(OWNER, ORDERS, CLAIM),
        attempt_record(OWNER, ORDERS, OPEN),
        attempt_record(OWNER, ORDERS, closed),
        deletion_record(OWNER, ORDERS, CLAIM.producer),
    ]
    assert attempts_of(records, OWNER, [ORDERS]) == {ORDERS: [closed]}
    assert not closed.may_write


def test_attempts_of_other_owners_and_partitions_are_not_read() -> None:
    records = [
        attempt_record("another", ORDERS, OPEN),
        attempt_record(OWNER, TopicPartition("orders", 4), OPEN),
        attempt_record(OWNER, ORDERS, OPEN)._replace(key=b"{"),
    ]
    assert attempts_of(records, OWNER, [ORDERS]) == {ORDERS: []}


def test_a_value_that_cannot_be_read_is_a_claim() -> None:
    record = attempt_record(OWNER, ORDERS, OPEN)._replace(value=b'{"state":"later"}')
    (found,) = attempts_of([record], OWNER, [ORDERS])[ORDERS]
    assert found == Attempt(OPEN.producer, 0)
    assert found.may_write


def test_records_have_the_format_of_the_versions_before() -> None:
    value = b'{"state":"open","generation":0,"offset":1000,"ends":[[0,5],[900,20],[2,1]]}'
    assert attempt_record(OWNER, ORDERS, OPEN).value == value
    assert attempt_record(OWNER, ORDERS, OPEN, encode_ends(OPEN.ends)).value == value
    claim = attempt_record(OWNER, ORDERS, CLAIM)._replace(
        value=b'{"state":"claimed","generation":0,"offset":0,"ends":[]}'
    )
    assert attempts_of([claim], OWNER, [ORDERS]) == {ORDERS: [CLAIM]}
