"""Defines the callbacks of a `BatchWriter`."""

from collections.abc import Collection
from typing import Protocol

from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition


class WriterListener(Protocol):
    """Receives the outcomes of writing. All calls come on the loop's thread."""

    def acknowledged(
        self, partition: TopicPartition, batch: OutgoingBatch, base_offset: int, *, completes: bool
    ) -> None:
        """Called in order per partition. A split batch comes in parts; the last one completes it."""

    def write_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The partition is retried with back-off; an acknowledgement means that it works again."""

    def write_possible(self, partition: TopicPartition) -> None:
        """Leader and producer id are known and nothing waits: without data no acknowledgement would come."""

    def write_refused(self, partition: TopicPartition, error: SparkmirrorError, batch: OutgoingBatch) -> None:
        """The target will never take this batch as it is. It and all after it were discarded."""

    def sequence_lost(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """The broker expects another sequence. Unacknowledged batches are discarded: call `begin` again.

        In transactions: nothing more can be written in this one, nor can it be committed.
        """

    def leaders_changed(self, partitions: Collection[TopicPartition]) -> None:
        """Called when leaders were elected, the same ones included: logs may lack what they had."""

    def target_recreated(self, partition: TopicPartition) -> None:
        """The topic has another id than at `begin`. What was not acknowledged is discarded."""
