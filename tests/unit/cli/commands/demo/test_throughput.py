from dataclasses import replace

import pytest

from sparkmirror.cli.commands.demo.throughput import Snapshot, Throughput
from sparkmirror.domain.latency import LatencyHistogram, bucket_middle_ms
from sparkmirror.storage.progress import PartitionProgress
from tests.support.progress_records import progress


def snapshot(*progress: PartitionProgress) -> Snapshot:
    return {its.source: its for its in progress}


def test_nothing_is_known_before_the_first_snapshot() -> None:
    throughput = Throughput()

    assert throughput.topics() == []
    assert (throughput.total().records_per_s, throughput.total().lag) == (0, None)


def test_rates_are_differences_over_the_time_between_the_reports() -> None:
    throughput = Throughput()
    throughput.observe(snapshot(progress("orders-0", records=1000, at=50.0)), now=0.0)
    throughput.observe(snapshot(progress("orders-0", records=3000, lag=7, at=52.0)), now=2.9)

    (orders,) = throughput.topics()

    assert orders.name == "orders"
    assert (orders.records_per_s, orders.bytes_per_s, orders.lag) == (1000, 100_000, 7)


def test_partitions_add_up_to_topics_and_topics_to_the_total() -> None:
    throughput = Throughput()
    names = ("orders-0", "orders-1", "payments-0")
    throughput.observe(snapshot(*(progress(name) for name in names)), now=0.0)
    throughput.observe(
        snapshot(*(progress(name, records=10, lag=5, at=1001.0) for name in names)),
        now=1.0,
    )

    orders, payments = throughput.topics()

    assert (orders.partitions, orders.records_per_s, orders.lag) == (2, 20, 10)
    assert (payments.partitions, payments.records_per_s, payments.lag) == (1, 10, 5)
    assert (throughput.total().partitions, throughput.total().records_per_s) == (3, 30)


def test_only_the_last_seconds_count() -> None:
    throughput = Throughput(window_s=5.0)
    for second in range(100):
        records = 1000 * second if second < 90 else 90_000
        throughput.observe(snapshot(progress("orders-0", records=records, at=float(second))), float(second))

    assert throughput.total().records_per_s == 0


def test_counters_that_restart_make_no_negative_rate() -> None:
    throughput = Throughput()
    throughput.observe(snapshot(progress("orders-0", records=5000, at=1.0)), now=1.0)
    restarted = replace(progress("orders-0", records=10, at=2.0), job_epoch=2)
    throughput.observe(snapshot(restarted), now=2.0)

    assert throughput.total().records_per_s == 0


def test_a_partition_without_a_new_report_has_no_rate() -> None:
    throughput = Throughput()
    throughput.observe(snapshot(progress("orders-0", records=5000, at=1.0)), now=1.0)
    throughput.observe(snapshot(progress("orders-0", records=5000, at=1.0)), now=2.0)

    assert throughput.total().records_per_s == 0
    assert throughput.total().p50_ms is None


def test_latency_is_of_the_records_inside_the_window() -> None:
    throughput = Throughput()
    before = replace(progress("orders-0", at=1.0), latency=LatencyHistogram({40: 100_000}))
    now = replace(progress("orders-0", at=2.0), latency=LatencyHistogram({3: 98, 9: 2, 40: 100_000}))
    throughput.observe(snapshot(before), now=1.0)
    throughput.observe(snapshot(now), now=2.0)

    assert throughput.total().p50_ms == pytest.approx(bucket_middle_ms(3))
    assert throughput.total().p99_ms == pytest.approx(bucket_middle_ms(9))
