"""Topics recreated between a task's first metadata and the start of its partitions, in virtual time."""

import random
import time
from collections.abc import Callable

import pytest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import IncidentKind
from sparkmirror.storage.positions import NOTHING_REPLICATED
from tests.memory.committed import places
from tests.memory.intercepted_broker import Request, intercept
from tests.memory.stage import REMOTE, TOPIC, Shape, Stage
from tests.support.batches import Rec, encode
from tests.unit.copy.copied_records import SOURCE
from tests.unit.copy.one_partition import QUIET_S, copy_of, one_partition

OLD, NEW, LATER = 9, 30, 4
"""Records of a source topic: more than before, so that the old position exists in the new topic too."""
SOON_S = 5.0
AFTER_TIMEOUTS_S = 90.0
DELIVERED_S = 0.1
COPY = TopicPartition(REMOTE, 0)


class LateRecreation:
    """Holds back the reading of positions until reader and writer have metadata, then recreates a topic."""

    def __init__(self, stage: Stage, recreate: Callable[[Stage], None]) -> None:
        self.is_done = False
        self._stage = stage
        self._recreate = recreate
        self._described: set[str] = set()
        self._is_due = False
        for broker in stage.source.brokers:
            intercept(stage.network, broker, self._note)
        for broker in stage.target.brokers:
            intercept(stage.network, broker, self._hold)

    def _note(self, request: Request, carry_out: Callable[[], None]) -> None:
        carry_out()
        if request.api_key == MetadataRequest.API_KEY:
            self._described.update(topic.name for topic in request.decoded().topics or ())

    def _hold(self, request: Request, carry_out: Callable[[], None]) -> None:
        if request.api_key == ListOffsetsRequest.API_KEY and not self.is_done:
            self._wait(carry_out)
        else:
            self._note(request, carry_out)

    def _wait(self, carry_out: Callable[[], None]) -> None:
        if self.is_done:
            carry_out()
            return
        if self._described >= {TOPIC, REMOTE} and not self._is_due:
            self._is_due = True
            self._stage.time.call_later(DELIVERED_S, self._act)
        self._stage.time.call_later(DELIVERED_S, self._wait, carry_out)

    def _act(self) -> None:
        self._recreate(self._stage)
        self.is_done = True


def recreate_source(stage: Stage) -> None:
    stage.replace_topic(stage.source, TOPIC)
    stage.write(0, NEW)


def recreate_target(stage: Stage) -> None:
    """With more records than before, of another producer."""
    stage.replace_topic(stage.target, REMOTE)
    now_ms = int(time.time() * 1000)
    records = [Rec(at, now_ms, b"key", b"-1") for at in range(NEW)]
    stage.target.log(COPY).append(bytes(encode(records)), stage.target.now_ms())


@pytest.mark.parametrize(
    ("recreate", "expected"),
    [
        (recreate_source, list(range(OLD + NEW + LATER))),
        (recreate_target, [-1] * NEW + list(range(OLD, OLD + LATER))),
    ],
    ids=["source", "target"],
)
def test_a_topic_recreated_after_the_first_metadata_is_noticed_and_nothing_lost(
    recreate: Callable[[Stage], None], expected: list[int]
) -> None:
    """The metadata of reader and writer are then older than the ids that the partition begins with."""
    stage = Stage(random.Random(1), Shape(partitions=1, is_lossy=True))
    stage.write(0, OLD)
    first = stage.run_task()
    assert stage.run_until(lambda: stage.copied(0) == list(range(OLD)), SOON_S)
    first.loop.stop()
    assert stage.run_until(lambda: first.is_over, SOON_S)
    assert stage.forward.has_positions

    recreation = LateRecreation(stage, recreate)
    second = stage.run_task()
    assert stage.run_until(lambda: recreation.is_done, SOON_S)
    stage.write(0, LATER)

    def copied() -> list[int]:
        return places(stage.target.log(COPY))

    assert stage.run_until(lambda: len(copied()) >= len(expected), AFTER_TIMEOUTS_S), copied()
    assert copied() == expected
    second.loop.stop()
    assert stage.run_until(lambda: second.is_over, SOON_S)
    assert copied() == expected
    assert not stage.violations


def test_a_topic_recreated_before_an_older_attempt_stores_its_position_is_noticed() -> None:
    """It knows the new topic, and not what the newer attempt has copied from the old one."""
    with one_partition() as partition:
        stage = partition.stage
        older = partition.start()
        partition.write(range(OLD))
        partition.run_until_stored(OLD - 1)
        newer = partition.start()
        partition.run_for(QUIET_S)
        newer.kill()
        stage.replace_topic(stage.source, TOPIC)
        partition.run_until_stored(NOTHING_REPLICATED)
        older.kill()
        partition.source = stage.source.log(SOURCE)
        partition.write(range(OLD, OLD + NEW))
        last = partition.start()
        partition.run_for(QUIET_S)
        assert partition.copied == list(range(OLD + NEW))
        assert copy_of(last).incidents == {IncidentKind.SOURCE_RECREATED: 1}
