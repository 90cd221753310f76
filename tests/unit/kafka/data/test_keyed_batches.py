"""Records of a transaction are batched by the partitions of their keys."""

from sparkmirror.batches.log_records import LogRecord, decode_log_batch
from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.keyed_batches import keyed_batches, partition_of


def test_each_record_is_in_the_partition_of_its_key_in_order() -> None:
    records = [LogRecord(b"key-%d" % (at % 7), b"%d" % at, partition=None) for at in range(40)]
    batches = keyed_batches("positions", 5, records, 1234)
    assert len({partition for partition, _ in batches}) == len(batches)
    found = [
        (partition, record)
        for partition, batch in batches
        for fetched in iterate_batches(batch.data)
        for record in decode_log_batch(fetched, partition.partition)
    ]
    assert len(found) == len(records)
    for key in {record.key for record in records}:
        values = [record.value for _, record in found if record.key == key]
        assert values == [record.value for record in records if record.key == key]
    for partition, record in found:
        assert partition == TopicPartition("positions", partition_of(record.key or b"", 5))


def test_no_batch_grows_above_what_every_broker_takes() -> None:
    records = [LogRecord(b"key", bytes(100_000), partition=None) for _ in range(12)]
    batches = keyed_batches("positions", 3, records, 0)
    assert [len(batch.offsets) for _, batch in batches] == [5, 5, 2]
