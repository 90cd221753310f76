"""Reads and writes offset syncs in MM2's bytes; a header, which Java ignores, has the length of the run."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import MalformedRecordError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync

_RUN = "sparkmirror.run"


class RunSync(NamedTuple):
    """A sync, and how many records, counted back from its own, have the same difference of offsets."""

    sync: OffsetSync
    run: int = 1

    def to_record(self) -> LogRecord:
        headers = ((_RUN, b"%d" % self.run),) if self.run > 1 else ()
        return LogRecord(self.sync.encode_key(), self.sync.encode_value(), headers=headers)

    def reversed(self, topic: str) -> "RunSync":
        """The same sync for the opposite direction; `topic` is the name on the target."""
        sync, there = self.sync, TopicPartition(topic, self.sync.topic_partition.partition)
        return RunSync(OffsetSync(there, sync.downstream_offset, sync.upstream_offset), self.run)


def parse_offset_sync(record: LogRecord) -> RunSync | None:
    """Parse a sync; None for another record.

    A sync that has no header, as Java's, covers its own record only.
    """
    try:
        sync = OffsetSync.decode(record.key or b"", record.value or b"")
    except MalformedRecordError:
        return None
    run = dict(record.headers).get(_RUN) or b""
    return RunSync(sync, max(1, int(run)) if run.isdigit() else 1)


class OffsetSyncsReader:
    """Keeps the history of a flow's syncs, partition by partition. One owner."""

    def __init__(
        self,
        settings: ConnectionSettings,
        topic: str,
        *,
        turned: Callable[[RunSync], RunSync] | None = None,
        may_be_missing: bool = False,
    ) -> None:
        """`turned` converts each sync, to one of the opposite direction for example."""
        self._tail = TopicTail(settings, topic, may_be_missing=may_be_missing)
        self._turned = turned
        self._histories: dict[TopicPartition, SyncHistory] = {}
        self._is_first_reading = True

    @property
    def histories(self) -> Mapping[TopicPartition, SyncHistory]:
        """Return histories by the source's partitions, as of the last `catch_up`."""
        return self._histories

    def catch_up(self, deadline_s: float, *, newest_only: bool = False) -> None:
        """Read up to the topic's end. Raises KafkaError; what was read until then is kept.

        With `newest_only` the first reading keeps only the last sync of each partition: a checkpoint task
        that does not know its own checkpoints must not send groups back to older ones (KAFKA-15905).
        """
        for record in self._tail.read_to_end(deadline_s):
            parsed = parse_offset_sync(record)
            if parsed is None:
                continue
            if self._turned is not None:
                parsed = self._turned(parsed)
            partition = parsed.sync.topic_partition
            history = self._histories.get(partition)
            if history is None or (newest_only and self._is_first_reading):
                self._histories[partition] = SyncHistory(*parsed)
            else:
                history.add(*parsed)
        self._is_first_reading = False

    def forget(self, is_stale: Callable[[TopicPartition], bool]) -> None:
        """Drop the histories of such partitions of the source: what follows begins new ones."""
        self._histories = {at: each for at, each in self._histories.items() if not is_stale(at)}

    def close(self) -> None:
        self._tail.close()
