"""Facts about brokers' handling of produced batches that the batch writer relies on."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from sparkmirror.batches.record_batch import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    FetchedBatch,
    iterate_batches,
    rewrite_header,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.wire import error_codes, produce
from tests.contract.event_loop import batch_of
from tests.support.any_cluster import AnyCluster
from tests.support.batches import Rec, decode, encode
from tests.support.broker_data import create_topic, numbered
from tests.support.broker_requests import Asker, asking

DELETE_HORIZON: Final = 0x40
HOUR_MS: Final = 3_600_000
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
NOW_MS: Final = int(time.time() * 1000)

CONFIGS: Final[Mapping[str, dict[str, str]]] = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "small-batches": {"max.message.bytes": "100"},
    "two-in-sync": {"min.insync.replicas": "2"},
    "small-segments": {"segment.bytes": "1048576", "max.message.bytes": "3000000"},
}
PARTITIONS: Final = 24

MakePartition = Callable[[str], TopicPartition]


@pytest.fixture(scope="module")
def asker(cluster: AnyCluster) -> Iterator[Asker]:
    with asking(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def new_partition(cluster: AnyCluster) -> MakePartition:
    """Return an empty partition of a topic with the named config at each call."""
    numbers = {}
    for name, config in CONFIGS.items():
        partitions = PARTITIONS if name == "plain" else 3
        create_topic(
            cluster.bootstrap_servers, f"contract.produce-{name}", partitions=partitions, config=config
        )
        numbers[name] = iter(range(partitions))
    return lambda name: TopicPartition(f"contract.produce-{name}", next(numbers[name]))


def kept(asker: Asker, partition: TopicPartition) -> list[FetchedBatch]:
    return list(iterate_batches(asker.fetch_one(partition, 0).records))


@pytest.mark.parametrize("version", range(produce.VERSION_LOW, produce.VERSION_HIGH + 1))
def test_every_supported_produce_version_is_answered(
    asker: Asker, new_partition: MakePartition, version: int
) -> None:
    first, second = new_partition("plain"), new_partition("plain")
    batches = {first: batch_of(numbered(3)), second: batch_of(numbered(2))}
    for expected in ({first: 0, second: 0}, {first: 3, second: 2}):
        response = asker.produce(batches, version)
        assert {produced.partition: produced.error for produced in response.partitions} == {
            first: 0,
            second: 0,
        }
        assert {produced.partition: produced.base_offset for produced in response.partitions} == expected


@pytest.mark.parametrize("codec", range(5))
def test_batch_is_stored_unchanged_but_for_offset_and_epoch(
    asker: Asker, new_partition: MakePartition, codec: int
) -> None:
    partition = new_partition("plain")
    batch = encode([Rec(at, NOW_MS + at, b"key", b"value" * at) for at in range(9)], codec=codec)
    assert asker.produce_one(partition, batch).error == 0
    (back,) = kept(asker, partition)
    assert bytes(back.data[16:]) == bytes(batch[16:])
    assert back.header.base_offset == 0
    assert back.header.leader_epoch == 0


def test_first_of_two_entries_for_one_partition_in_a_request_is_lost(
    asker: Asker, new_partition: MakePartition
) -> None:
    partition = new_partition("plain")
    topic = ProduceRequest.TopicProduceData
    data = [
        topic.PartitionProduceData(index=partition.partition, records=bytes(batch_of(numbered(1, at))))
        for at in range(2)
    ]
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1000,
        topic_data=[topic(name=partition.topic, partition_data=data)],
    )
    answer = asker.ask(request, ProduceResponse, version_max=produce.VERSION_HIGH)
    assert [produced.error_code for produced in answer.responses[0].partition_responses] == [0]
    (batch,) = kept(asker, partition)
    assert [record.key for record in decode(batch.data)] == [b"key-1"]


REFUSED: Final = {
    "no-key": ("compacted", batch_of([(b"key", b"value"), (None, b"value")]), error_codes.INVALID_RECORD),
    "in-two-hours": ("plain", encode([Rec(0, NOW_MS + 2 * HOUR_MS)]), error_codes.INVALID_TIMESTAMP),
    "no-records": ("plain", batch_of(numbered(2), record_count=0), error_codes.INVALID_RECORD),
    "not-from-zero": ("plain", batch_of(numbered(2), base_offset=5), error_codes.INVALID_RECORD),
    "not-all-counted": ("plain", encode([Rec(0), Rec(5)], last_offset_delta=5), error_codes.INVALID_RECORD),
    "two-batches": ("plain", batch_of(numbered(1)) + batch_of(numbered(1)), error_codes.INVALID_RECORD),
    "control": ("plain", batch_of(numbered(1), attributes=CONTROL), error_codes.INVALID_RECORD),
    "above-max-message-bytes": ("small-batches", batch_of(numbered(9)), error_codes.MESSAGE_TOO_LARGE),
    "above-segment-bytes": (
        "small-segments",
        encode([Rec(0, NOW_MS, value=b"x" * 1_500_000)]),
        error_codes.RECORD_LIST_TOO_LARGE,
    ),
    "wrong-crc": ("plain", batch_of(numbered(2), crc=1), error_codes.CORRUPT_MESSAGE),
    "append-time-bit": (
        "append-time",
        batch_of(numbered(2), attributes=LOG_APPEND_TIME),
        error_codes.INVALID_TIMESTAMP,
    ),
    "transactional-without-id": (
        "plain",
        batch_of(numbered(2), attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, base_sequence=0),
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}


@pytest.fixture(scope="module")
def refusing(new_partition: MakePartition) -> Mapping[str, TopicPartition]:
    return {name: new_partition(name) for name in CONFIGS}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_batch_is_refused_as_a_whole(
    asker: Asker, refusing: Mapping[str, TopicPartition], case: str
) -> None:
    topic, batch, code = REFUSED[case]
    produced = asker.produce_one(refusing[topic], batch)
    assert (produced.error, produced.base_offset) == (code, -1)
    assert asker.fetch_one(refusing[topic], 0).high_watermark == 0


def test_no_refusal_of_a_batch_counts_as_retriable() -> None:
    """An error that the same batch gets every time must be reported, not retried silently."""
    refusals = {code for _, _, code in REFUSED.values()} - {
        error_codes.MESSAGE_TOO_LARGE,
        error_codes.RECORD_LIST_TOO_LARGE,
    }
    assert not [code for code in refusals if error_codes.is_retriable(code)]


def test_a_topic_can_not_want_more_replicas_in_sync_than_it_has(
    asker: Asker, new_partition: MakePartition
) -> None:
    assert asker.produce_one(new_partition("two-in-sync"), batch_of(numbered(2))).error == 0


def test_a_falsified_last_offset_delta_corrupts_the_log(asker: Asker, new_partition: MakePartition) -> None:
    """Hence a batch with gaps is re-encoded and its header never patched."""
    partition = new_partition("plain")
    assert asker.produce_one(partition, encode([Rec(0), Rec(2), Rec(5)], last_offset_delta=2)).error == 0
    assert asker.produce_one(partition, batch_of(numbered(2))).base_offset == 3
    corrupt = kept(asker, partition)[0]
    assert corrupt.header.last_offset == 2
    assert [record.offset for record in decode(corrupt.data)] == [0, 2, 5]


def test_an_append_time_bit_sent_to_a_create_time_topic_is_silently_cleared(
    asker: Asker, new_partition: MakePartition
) -> None:
    partition = new_partition("plain")
    batch = encode([Rec(0, NOW_MS - 5)], attributes=LOG_APPEND_TIME, max_timestamp=NOW_MS)
    assert asker.produce_one(partition, batch).error == 0
    (back,) = kept(asker, partition)
    assert back.header.attributes == 0
    assert [record.timestamp for record in decode(back.data)] == [NOW_MS - 5]


def test_an_append_time_topic_stamps_whole_batches(asker: Asker, new_partition: MakePartition) -> None:
    partition = new_partition("append-time")
    assert asker.produce_one(partition, encode([Rec(0, NOW_MS - HOUR_MS)])).error == 0
    (back,) = kept(asker, partition)
    assert back.header.attributes == LOG_APPEND_TIME
    assert back.header.base_timestamp == NOW_MS - HOUR_MS
    assert back.header.max_timestamp >= NOW_MS


def test_delete_horizon_is_stored_unless_it_is_cleared(asker: Asker, new_partition: MakePartition) -> None:
    """See KIP-534: with the bit set, the target would drop the tombstone at its first cleaning."""
    partition = new_partition("compacted")
    tombstone = encode([Rec(0, NOW_MS, b"key", None)], attributes=DELETE_HORIZON)
    stamped = bytearray(tombstone)
    rewrite_header(memoryview(stamped), -1, -1, -1)
    assert [asker.produce_one(partition, batch).error for batch in (tombstone, stamped)] == [0, 0]
    as_it_came, cleared = kept(asker, partition)
    assert as_it_came.header.attributes == DELETE_HORIZON
    assert cleared.header.attributes == 0
    assert decode(cleared.data) == [Rec(1, NOW_MS, b"key", None)]
