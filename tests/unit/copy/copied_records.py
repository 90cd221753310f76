"""Puts records of a stage's source into its target, as an earlier attempt of the task would have."""

from typing import Final

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.domain.ids import LogIdentity, TopicPartition
from sparkmirror.storage.positions import Position
from tests.memory.stage import REMOTE, TOPIC, Stage
from tests.support.batches import Rec, encode, patch

SOURCE: Final = TopicPartition(TOPIC, 0)
TARGET: Final = TopicPartition(REMOTE, 0)
PRODUCER: Final = ProducerId(4711, 3)


def copy_batches_of(stage: Stage, count: int, *, producer: ProducerId = PRODUCER, gap: int = 0) -> None:
    """The source's next batches; `gap` sequences are left out before them."""
    log, now_ms = stage.target.log(TARGET), stage.target.now_ms()
    done = sum(not is_foreign(stored.data) for stored in log.batches)
    for stored in stage.source.log(SOURCE).batches[done : done + count]:
        data = patch(
            bytearray(stored.data),
            base_offset=0,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=stored.base_offset + gap,
        )
        log.producers.entries.clear()
        assert log.append(bytes(data), now_ms).error == 0
    stage.target.changed()


def is_foreign(data: bytes) -> bool:
    (batch,) = iterate_batches(memoryview(bytearray(data)))
    return batch.header.producer_id < 0


def write_foreign(stage: Stage, count: int) -> None:
    """Records of another client in the target."""
    records = [Rec(at, key=b"foreign", value=b"-1") for at in range(count)]
    assert stage.target.log(TARGET).append(bytes(encode(records)), stage.target.now_ms()).error == 0


def logs_of(stage: Stage) -> LogIdentity:
    return LogIdentity(stage.source.topics[TOPIC].id.bytes, -1, stage.target.topics[REMOTE].id.bytes)


def position_after(stage: Stage, records: int, *, target_end: int | None = None) -> Position:
    """The position stored when so many records were acknowledged."""
    end = records if target_end is None else target_end
    return Position(records - 1, ProducerState(PRODUCER, records, end), logs_of(stage))
