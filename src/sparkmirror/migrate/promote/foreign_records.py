"""Counts the records of a flow's target topics that others have written, by their producer ids."""

from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field

from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.migrate.promote.parted_logs import LogSpan


@dataclass(slots=True)
class ForeignRecords:
    """Reads each log once; later calls read what was added since. One owner."""

    target: ConnectionSettings
    _read_to: dict[TopicPartition, int] = field(default_factory=dict)
    _found: dict[TopicPartition, int] = field(default_factory=dict)

    def count(self, log: LogSpan, own: Collection[int]) -> int:
        """Count them, blocking. Raises KafkaError."""
        at, (_, start, end) = log.partition, log
        begin = max(start, self._read_to.get(at, 0))
        if begin < end:
            with closing(SpanReader(ConsumerSettings(self.target))) as reader:
                for batch in reader.read(at, begin, end):
                    header = batch.header
                    if header.producer_id not in own and not header.attributes & CONTROL:
                        self._found[at] = self._found.get(at, 0) + header.record_count
            self._read_to[at] = end
        return self._found.get(at, 0)
