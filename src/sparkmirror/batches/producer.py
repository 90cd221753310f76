"""Holds the state with which an idempotent writer continues exactly where another one ended (KIP-98)."""

from typing import NamedTuple

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS, BatchHeader


class ProducerId(NamedTuple):
    id: int
    epoch: int

    def next_epoch(self) -> "ProducerId":
        """The next epoch, under which brokers refuse batches of the last one."""
        return ProducerId(self.id, self.epoch + 1)

    def wrote(self, header: BatchHeader) -> bool:
        return (header.producer_id, header.producer_epoch) == self


NOT_IDEMPOTENT = ProducerId(-1, -1)
"""The producer id of batches when the principal may not write idempotently."""


class ProducerState(NamedTuple):
    """`next_sequence` counts the records written under `producer`; `next_offset` is where they ended.

    The mirror's own records from `next_offset` on are not counted yet.
    """

    producer: ProducerId
    next_sequence: int
    next_offset: int

    def after(self, count: int, next_offset: int) -> "ProducerState":
        """The state after so many more records."""
        return ProducerState(self.producer, (self.next_sequence + count) % SEQUENCE_MODULUS, next_offset)

    def in_next_epoch(self, next_offset: int) -> "ProducerState":
        """The same id with new numbers, from 0."""
        return ProducerState(self.producer.next_epoch(), 0, next_offset)
