"""Reads from the end of a target's log how a partition whose offsets are preserved goes on.

Data goes on under the epoch of the last batch of the partition's producer id, behind its sequence; where
markers of a later epoch follow it, under theirs, from 0. So every attempt gives a record the same number.
Behind data of another mirror, which was judged before, it begins under the claimed epoch: what an attempt
before it still has under way is for offsets that the other one has filled.
"""

from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from sparkmirror.batches.filler import is_filler
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import CONTROL, SEQUENCE_MODULUS, BatchHeader, FetchedBatch
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import RetriableError, SparkmirrorError, UnsupportedVersionError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.offsets import LATEST, list_offsets
from sparkmirror.kafka.partition_reader import SpanReader
from sparkmirror.kafka.producers import known_producer

_SPAN: Final = 100
_SPAN_GROWTH: Final = 8


class Bounds(NamedTuple):
    """Where a log starts and ends."""

    start: int
    end: int


class Tail(NamedTuple):
    """`state` is how data goes on at the end of the log.

    `foreign` is the first batch of somebody else that was found, `last_record` the offset of the last record
    of ours; both None for none. `is_filler` says that the log holds no record but filler, `is_own` that any
    batch of ours is there.
    """

    state: ProducerState
    is_own: bool
    foreign: BatchHeader | None = None
    last_record: int | None = None
    is_filler: bool = False


class Writers(NamedTuple):
    """`own` is the claimed id, `ids` are all of ours; before `known_end` others may have written, too."""

    own: ProducerId
    ids: Collection[int]
    known_end: int = 0


def read_tail(target: ConsumerSettings, partition: TopicPartition, bounds: Bounds, writers: Writers) -> Tail:
    """Blocks. Raises KafkaError."""
    own, ids, known_end = writers
    batches: list[BatchHeader] = []
    last: FetchedBatch | None = None
    begin, span = bounds.end, _SPAN
    with closing(SpanReader(target)) as reader:
        while begin > bounds.start and not _suffices(batches):
            begin, span = max(bounds.start, bounds.end - span), span * _SPAN_GROWTH
            batches = []
            for batch in reader.read(partition, begin, bounds.end):
                batches.append(batch.header)
                if not batch.header.attributes & CONTROL:
                    last = batch
    others = [header for header in batches if header.producer_id not in ids]
    foreign = next((header for header in others if header.last_offset >= known_end), None)
    state = state_behind(batches, bounds.end)
    if state is not None and state.producer.id not in ids:
        state = ProducerState(own, 0, bounds.end)
    if state is None:
        state = _remembered(target, partition, bounds.end, own, batches)
    is_own = any(header.producer_id in ids for header in batches)
    if last is None:
        return Tail(state, is_own, foreign, is_filler=not batches)
    filler = is_filler(last)
    return Tail(state, is_own, foreign, None if filler else last.header.last_offset, filler)


def state_behind(batches: Sequence[BatchHeader], end: int) -> ProducerState | None:
    """How data goes on behind these batches, which reach to the end; None where they have no data."""
    data = next((header for header in reversed(batches) if not header.attributes & CONTROL), None)
    if data is None:
        return None
    marked = _marked(batches, data.producer_id)
    if marked is not None and marked > data.producer_epoch:
        return ProducerState(ProducerId(data.producer_id, marked), 0, end)
    following = (data.last_sequence + 1) % SEQUENCE_MODULUS
    return ProducerState(ProducerId(data.producer_id, data.producer_epoch), following, end)


def _marked(batches: Sequence[BatchHeader], producer_id: int) -> int | None:
    """The highest epoch of markers behind the last data."""
    found = None
    for header in reversed(batches):
        if not header.attributes & CONTROL:
            break
        if header.producer_id == producer_id:
            found = max(header.producer_epoch, found or 0)
    return found


def _suffices(batches: Sequence[BatchHeader]) -> bool:
    return any(not header.attributes & CONTROL for header in batches)


def _require_replicated(target: ConsumerSettings, partition: TopicPartition, end: int) -> None:
    """What the leader remembers must be about this end. Raises KafkaError."""
    found = list_offsets(target, [partition], LATEST, unreplicated=True)[partition]
    if isinstance(found, SparkmirrorError):
        raise found
    if found != end:
        raise RetriableError(
            f"{partition}: offsets from {end} on are not replicated: waiting for the followers"
        )


def _remembered(
    target: ConsumerSettings,
    partition: TopicPartition,
    end: int,
    own: ProducerId,
    markers: Sequence[BatchHeader],
) -> ProducerState:
    """Where the log shows no data of ours: as the leader remembers it, else numbered by offsets."""
    try:
        known = known_producer(target.connection, partition, own.id)
    except UnsupportedVersionError:
        known = None
    if known is not None:
        _require_replicated(target, partition, end)
        return ProducerState(
            ProducerId(own.id, known.epoch), (known.last_sequence + 1) % SEQUENCE_MODULUS, end
        )
    marked = _marked(markers, own.id)
    if marked is not None:
        return ProducerState(ProducerId(own.id, marked), 0, end)
    return ProducerState(ProducerId(own.id, 0), end % SEQUENCE_MODULUS, end)
