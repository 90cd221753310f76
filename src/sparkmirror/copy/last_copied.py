"""Looks up where an attempt ended: its last sequence in the target's log stands for an offset of the source.

No content is compared and the source is not read. The log is read backwards from its end, since the last
batch of the attempt is near it, as a rule, and the stored position may be another attempt's.
"""

from contextlib import closing
from typing import Final, NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL, SEQUENCE_MODULUS, BatchHeader
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.offsets import EARLIEST, require_offsets
from sparkmirror.kafka.partition_reader import SpanReader
from sparkmirror.offsets.sequence_ends import NoSuchEndError, SequenceEnd, end_behind
from sparkmirror.storage.attempts import Attempt, Stage
from sparkmirror.storage.positions import Position

_SPAN: Final = 100
_SPAN_GROWTH: Final = 8


class LastCopied(NamedTuple):
    """Copying continues at the upstream offset `end.offset`.

    `records` are behind the stored position, None where there is none of that attempt. `acknowledged` is
    where the target ended before it lost records, None where it has all.
    """

    end: SequenceEnd
    records: int | None
    acknowledged: int | None = None


def last_copied(
    target: ConsumerSettings, partition: TopicPartition, last: Attempt, position: Position | None, end: int
) -> LastCopied:
    """`end` is where the target's log ends; nothing of the attempt is added any more.

    Blocks. Raises KafkaError, AuthorizationError where the target may not be read.
    """
    stored = _stored(last, position)
    known, acknowledged = known_end(last, position)
    found = None
    if last.stage is not Stage.CLOSED or end != acknowledged:
        found = _last_end(target, partition, last, end)
    is_short = end < acknowledged or (found is not None and found.records < known.records)
    lost = acknowledged if is_short else None
    if found is None or found.records <= known.records:
        return LastCopied(known, None if stored is None else 0, lost)
    return LastCopied(found, None if stored is None else found.records - known.records, lost)


class KnownEnd(NamedTuple):
    """What is acknowledged of an attempt for certain, and where the target ended then."""

    end: SequenceEnd
    target_offset: int


def known_end(last: Attempt, position: Position | None) -> KnownEnd:
    """From its record and the stored position alone."""
    recorded = KnownEnd(last.ends[-1] if last.stage is Stage.CLOSED else last.ends[0], last.target_offset)
    stored = _stored(last, position)
    return recorded if stored is None or stored.end.records < recorded.end.records else stored


def _stored(last: Attempt, position: Position | None) -> KnownEnd | None:
    """None where the position is of another attempt."""
    if position is None or position.producer is None or position.producer.producer != last.producer:
        return None
    following = position.offset + 1
    try:
        records = end_behind(last.ends, position.producer.next_sequence).records
    except NoSuchEndError:
        return None  # older than an end that was acknowledged since
    end = SequenceEnd(records, following, position.logs.source_epoch)
    return KnownEnd(end, position.producer.next_offset)


def _last_end(
    target: ConsumerSettings, partition: TopicPartition, last: Attempt, end: int
) -> SequenceEnd | None:
    """Behind the attempt's last batch in the log, None where there is none."""
    first = require_offsets(target, [partition], EARLIEST)[partition]
    # What was truncated to before the attempt has been written anew.
    begin = first if end < last.target_offset else max(first, last.target_offset)
    batch = _last_batch(target, partition, last.producer, begin, end)
    if batch is None:
        return None
    try:
        return end_behind(last.ends, (batch.last_sequence + 1) % SEQUENCE_MODULUS)
    except NoSuchEndError:
        return SequenceEnd(0, last.ends[0].offset)  # older than what was acknowledged: records are lost


def _last_batch(
    target: ConsumerSettings, partition: TopicPartition, producer: ProducerId, begin: int, end: int
) -> BatchHeader | None:
    """The producer's last batch between these offsets."""
    with closing(SpanReader(target)) as reader:
        span = _SPAN
        while begin < end:
            middle = max(begin, end - span)
            found: BatchHeader | None = None
            for batch in reader.read(partition, middle, end, 1 << 62):
                if producer.wrote(batch.header) and not batch.header.attributes & CONTROL:
                    found = batch.header
            if found is not None:
                return found
            end, span = middle, span * _SPAN_GROWTH
    return None
