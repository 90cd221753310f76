"""An attempt that was given up and its successor, where they write at the same time."""

from typing import Final

import pytest

from tests.memory.compaction import compact
from tests.memory.network import Fate, MemoryNetwork
from tests.unit.copy.one_partition import QUIET_S, OnePartition

PRODUCE: Final = 0
EXPIRED_WAIT_S: Final = 30.0


class LateProduce:
    """The next Produce request is held, and arrives right before the first one after `follow`."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self.is_held = self.has_arrived = False
        self._is_due = False

    def follow(self) -> None:
        self._is_due = True

    def fate(self, api_key: int, /) -> Fate:
        if api_key != PRODUCE:
            return Fate.WELL
        if not self.is_held:
            self.is_held = True
            return Fate.LATE
        if self._is_due and not self.has_arrived:
            self.has_arrived = self._network.deliver() == 1
        return Fate.WELL


def test_a_late_batch_of_a_dead_attempt_does_not_hide_the_newest_values(partition: OnePartition) -> None:
    first = partition.start()
    partition.write(range(10), key=b"another")
    partition.run_until_stored(9)
    partition.stage.network.faults = late = LateProduce(partition.stage.network)
    partition.write(range(100, 110), keys=range(10))
    partition.run_until(lambda: late.is_held)
    first.kill()
    partition.require_stored(9)
    partition.write(range(200, 210), keys=range(10))
    compact(partition.source)
    late.follow()
    partition.start()
    partition.run_for(QUIET_S)
    if not late.has_arrived:
        raise TimeoutError("the late batch did not arrive")
    assert set(range(200, 210)) <= set(partition.copied)


def test_a_frozen_attempt_that_wakes_does_not_store_its_old_position(partition: OnePartition) -> None:
    """The successor has another producer id, because the source lost records meanwhile."""
    frozen = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.write_batches(50, 60)
    partition.run_until_written(60)
    partition.run_for(0.02)  # until the acknowledgement arrives
    frozen.freeze()
    partition.stage.network.disconnect()
    partition.require_stored(49)
    partition.write_batches(60, 80)
    partition.source.delete_before(70)
    successor = partition.start()
    partition.write_batches(80, 110)
    partition.run_until_stored(109)
    successor.loop.stop()
    partition.run_until(lambda: successor.is_over)
    frozen.loop.stop()
    frozen.thaw()
    partition.run_until(lambda: frozen.is_over)
    partition.start()
    partition.run_for(QUIET_S)
    assert partition.copied == [*range(60), *range(70, 110)]


def test_an_attempt_whose_transactional_id_expired_is_awaited_and_repeats_nothing(
    partition: OnePartition, caplog: pytest.LogCaptureFixture
) -> None:
    """A marker of the successor, which has another producer id, does not refuse what is on the way."""
    first = partition.start()
    partition.write_batches(0, 50)
    partition.run_until_stored(49)
    partition.stage.network.faults = late = LateProduce(partition.stage.network)
    partition.write_batches(50, 60)
    partition.run_until(lambda: late.is_held)
    first.kill()
    partition.stage.target.transactions.expire()
    partition.start()
    partition.run_for(EXPIRED_WAIT_S / 2)
    assert partition.target.end < 60
    assert partition.stage.network.deliver() == 1
    partition.write_batches(60, 80)
    partition.run_for(EXPIRED_WAIT_S + QUIET_S)
    assert "another producer id in their previous attempt" in caplog.text
    assert partition.copied == list(range(80))
