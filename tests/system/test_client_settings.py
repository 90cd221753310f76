"""Client settings with Kafka's names have the same effect as in Kafka's clients."""

import time

from sparkmirror.batches.compression import CODECS
from sparkmirror.batches.record_batch import CODEC_MASK
from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, batches_on_disk, config, keyed, numbered
from tests.support.topic_comparison import compare_topic
from tests.support.waiting import await_value
from tests.system import dual_run
from tests.system.dual_run import Mirrored

LATE_FETCH_WAIT_S = 2.0


def test_auto_offset_reset_latest_skips_existing_records(mirrored: Mirrored) -> None:
    skipped = numbered(10)
    appended = numbered(1, first=1000)
    append(mirrored.sides.source, dual_run.LATE, appended)
    await_late(mirrored.sides.target, appended[-1])
    assert not set(skipped) & set(keyed(mirrored.sides.target, dual_run.LATE))


def test_fetch_min_bytes_makes_the_broker_wait(mirrored: Mirrored) -> None:
    # The first record ends a fetch that has waited; the next fetch starts at that moment.
    source, target = mirrored.sides
    first, second = numbered(2, first=2000)
    append(source, dual_run.LATE, [first])
    await_late(target, first)
    append(source, dual_run.LATE, [second])
    sent_at = time.monotonic()
    await_late(target, second)
    assert time.monotonic() - sent_at > LATE_FETCH_WAIT_S / 2


def await_late(cluster: LocalCluster, record: tuple[bytes | None, bytes | None]) -> None:
    await_value(lambda: record in keyed(cluster, dual_run.LATE), 20, lambda: f"{record} has not arrived")


def test_large_records_pass_a_tiny_max_partition_fetch_bytes(mirrored: Mirrored) -> None:
    source, target = mirrored.sides
    compared = compare_topic(
        source.bootstrap_servers,
        target.bootstrap_servers,
        "client.large-records",
        "tuned.client.large-records",
    )
    assert compared.first_difference is None, str(compared.first_difference)
    assert compared.bytes > 8 * 900_000


def test_compression_type_reencodes_batches(mirrored: Mirrored) -> None:
    source, target = mirrored.sides
    codecs = {
        batch.header.attributes & CODEC_MASK for batch in batches_on_disk(target, "tuned.client.codecs")
    }
    assert codecs == {CODECS.index("zstd")}
    compared = compare_topic(
        source.bootstrap_servers, target.bootstrap_servers, "client.codecs", "tuned.client.codecs"
    )
    assert compared.first_difference is None, str(compared.first_difference)


def test_acks_of_one_needs_no_in_sync_replicas(mirrored: Mirrored) -> None:
    target = mirrored.sides.target
    assert config(target, "tuned.client.acks")["min.insync.replicas"] == "2"
    assert keyed(target, "tuned.client.acks") == numbered(10)
