"""Counts the records that a topic really holds, from the headers of its batches.

End offsets say more than that: compaction leaves gaps, and each transaction ends with a marker that has an
offset of its own.
"""

from dataclasses import dataclass

from bench.replay import Log
from bench.wire import Wire, batches_in
from bench.workloads import PARTITIONS


@dataclass(frozen=True, slots=True)
class LogContent:
    """`records` without markers; `offsets` with them, and with gaps."""

    records: int
    offsets: int
    batches: int
    size_bytes: int

    @property
    def share(self) -> float:
        """Records per offset."""
        return self.records / self.offsets if self.offsets else 0.0


def content_of(log: Log) -> LogContent:
    """Return the content of all partitions up to their present ends."""
    wire = Wire.connect(log.bootstrap)
    records = batches = size = 0
    ends = wire.end_offsets(log.topic, PARTITIONS)
    for partition, end in enumerate(ends):
        offset = 0
        while offset < end:
            fetched = wire.fetch(log.topic, partition, offset)
            for batch in batches_in(fetched.records):
                offset = batch.next_offset
                if batch.records and not batch.is_control:
                    records, batches, size = records + batch.records, batches + 1, size + len(batch.data)
            if not fetched.records:
                break
    wire.close()
    return LogContent(records, sum(ends), batches, size)
