"""A batch that the target refuses, and those behind it."""

from tests.unit.copy.one_partition import QUIET_S, OnePartition

DAY_MS = 86_400_000


def test_old_records_behind_a_refused_batch_are_copied_once_and_in_order(partition: OnePartition) -> None:
    """Brokers forget a producer by its last record's timestamp, which is that of the source."""
    old_ms = partition.stage.source.now_ms() - 3 * DAY_MS
    partition.target.producers.sweep_ms = 20_000
    partition.target_config["max.message.bytes"] = "3000"
    partition.start()
    partition.write(range(4), at_ms=old_ms)
    partition.run_until_stored(3)
    for first in range(4, 16, 4):
        partition.write(range(first, first + 4), key=b"k" * 500, at_ms=old_ms)
    partition.write([16], key=b"k" * 5000, at_ms=old_ms)
    for first in range(17, 33, 4):
        partition.write(range(first, first + 4), key=b"k" * 500, at_ms=old_ms)
    partition.run_for(120.0)
    partition.target_config["max.message.bytes"] = "6000"
    partition.run_for(2 * QUIET_S)
    assert partition.copied == list(range(33))


def test_old_records_above_a_high_watermark_that_stands_still_are_written_once(
    partition: OnePartition,
) -> None:
    """The broker has forgotten their producer when they are sent again, and would take them once more."""
    old_ms = partition.stage.source.now_ms() - 3 * DAY_MS
    partition.target.producers.sweep_ms = 3_000
    partition.start()
    partition.write(range(4), at_ms=old_ms)
    partition.run_until_stored(3)
    partition.target.hold()
    partition.write(range(4, 8), at_ms=old_ms)
    partition.run_for(120.0)  # longer than requests take
    partition.target.release()
    partition.stage.target.changed()
    partition.write(range(8, 12), at_ms=old_ms)
    partition.run_for(2 * QUIET_S)
    assert partition.copied == list(range(12))
