"""Makes the records of the dead-letter topic, `mm2-dead-letters.<source>.internal` on the target.

Written only under `on.bad.batch=skip`. A record has the source offsets that were skipped, and the error; the
source may still have the data. Compacted, with a key for each batch: one that is written twice counts once.
"""

from dataclasses import dataclass

from sparkmirror.batches.log_records import LogRecord, compact_json
from sparkmirror.domain.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Offsets `first` to `last` of a source partition are not on the target; `time` is in epoch seconds."""

    source: TopicPartition
    first: int
    last: int
    error: str
    time: float

    def to_record(self) -> LogRecord:
        topic, partition = self.source
        value = {
            "topic": topic,
            "partition": partition,
            "first": self.first,
            "last": self.last,
            "error": self.error,
            "time": self.time,
        }
        return LogRecord(compact_json([topic, partition, self.first]), compact_json(value))
