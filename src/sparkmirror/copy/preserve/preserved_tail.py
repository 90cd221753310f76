"""Reads from the end of a target's log how a partition whose offsets are preserved continues.

Data continues under the epoch of the last batch of the partition's producer id, behind its sequence; where
markers of a later epoch follow it, under theirs, from 0. So every attempt gives a record the same number.
It begins under the claimed epoch behind data of another mirror, which was judged before: what an attempt
before it still has under way is for offsets that the other one has filled.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from sparkmirror.batches.filler import is_filler
from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import CONTROL, SEQUENCE_MODULUS, BatchHeader, FetchedBatch
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import RetriableError, SparkmirrorError, UnsupportedVersionError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.transactions.known_producers import KnownProducer, known_producers

_SPAN: Final = 100
_SPAN_GROWTH: Final = 8


class Bounds(NamedTuple):
    """The start and the end of a log."""

    start: int
    end: int


class Tail(NamedTuple):
    """`state` is how data continues at the end of the log.

    `foreign` is the first batch found of another producer, `last` the last one of ours with records;
    both None for none. `is_filler` says that the log holds no record but filler, `is_own` that any batch of
    ours is there.
    """

    state: ProducerState
    is_own: bool
    foreign: BatchHeader | None = None
    last: FetchedBatch | None = None
    is_filler: bool = False

    @property
    def last_record(self) -> int | None:
        """The offset of the last record of ours."""
        return None if self.last is None else self.last.header.last_offset


class Writers(NamedTuple):
    """`own` is the claimed id, `ids` are all of ours; before `known_end` others may have written, too."""

    own: ProducerId
    ids: Collection[int]
    known_end: int = 0


class Log(NamedTuple):
    bounds: Bounds
    writers: Writers


class _Read(NamedTuple):
    """The batches at a log's end, and the last one with records."""

    batches: Sequence[BatchHeader]
    last: FetchedBatch | None


def read_tails(
    target: ConsumerSettings, reader: SpanReader, logs: Mapping[TopicPartition, Log]
) -> Mapping[TopicPartition, Tail | SparkmirrorError]:
    """Read the tails of many partitions; an error for each that fails. Blocks. Raises RetriableError."""
    reader.expect(
        {at: max(start, end - _SPAN) for at, ((start, end), _) in logs.items() if start < end},
    )
    found = {partition: _read(reader, partition, log.bounds) for partition, log in logs.items()}
    read = {at: each for at, each in found.items() if not isinstance(each, SparkmirrorError)}
    states: dict[TopicPartition, ProducerState | SparkmirrorError | None] = {
        at: state_behind(each.batches, logs[at].bounds.end) for at, each in read.items()
    }
    silent = {at: logs[at] for at, state in states.items() if state is None}
    states.update(_remembered(target, silent, {at: read[at].batches for at in silent}))
    return {
        **{at: each for at, each in found.items() if isinstance(each, SparkmirrorError)},
        **{at: _tail(logs[at], each, states[at]) for at, each in read.items()},
    }


def _read(reader: SpanReader, partition: TopicPartition, bounds: Bounds) -> _Read | SparkmirrorError:
    """Read from the end back to the last data."""
    batches: list[BatchHeader] = []
    last: FetchedBatch | None = None
    begin, span = bounds.end, _SPAN
    try:
        while begin > bounds.start and last is None:
            begin, span = max(bounds.start, bounds.end - span), span * _SPAN_GROWTH
            batches = []
            for batch in reader.read(partition, begin, bounds.end):
                batches.append(batch.header)
                if not batch.header.attributes & CONTROL:
                    last = batch
    except SparkmirrorError as error:
        return error
    return _Read(batches, last)


def _tail(log: Log, read: _Read, state: ProducerState | SparkmirrorError | None) -> Tail | SparkmirrorError:
    if isinstance(state, SparkmirrorError):
        return state
    (own, ids, known_end), end = log.writers, log.bounds.end
    others = [header for header in read.batches if header.producer_id not in ids]
    foreign = next((header for header in others if header.last_offset >= known_end), None)
    if state is None or state.producer.id not in ids:
        state = ProducerState(own, 0, end)
    is_own = any(header.producer_id in ids for header in read.batches)
    if read.last is None:
        return Tail(state, is_own, foreign, is_filler=not read.batches)
    filler = is_filler(read.last)
    return Tail(state, is_own, foreign, None if filler else read.last, filler)


def state_behind(batches: Sequence[BatchHeader], end: int) -> ProducerState | None:
    """The state behind these batches, which reach to the end; None where they have no data."""
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


def _remembered(
    target: ConsumerSettings,
    logs: Mapping[TopicPartition, Log],
    markers: Mapping[TopicPartition, Sequence[BatchHeader]],
) -> Mapping[TopicPartition, ProducerState | SparkmirrorError]:
    """The states where logs show no data of ours: as leaders remember them, else numbered by offsets."""
    known = known_producers(target.connection, {at: log.writers.own.id for at, log in logs.items()})
    remembered = [at for at, found in known.items() if isinstance(found, KnownProducer)]
    ends = list_offsets(target, remembered, LATEST, unreplicated=True)
    states: dict[TopicPartition, ProducerState | SparkmirrorError] = {}
    for at, log in logs.items():
        found, own, end = known[at], log.writers.own, log.bounds.end
        if isinstance(found, KnownProducer):
            states[at] = _state_of(at, found, own, end, ends[at])
        elif isinstance(found, SparkmirrorError) and not isinstance(found, UnsupportedVersionError):
            states[at] = found
        elif (marked := _marked(markers[at], own.id)) is not None:
            states[at] = ProducerState(ProducerId(own.id, marked), 0, end)
        else:
            states[at] = ProducerState(ProducerId(own.id, 0), end % SEQUENCE_MODULUS, end)
    return states


def _state_of(
    partition: TopicPartition,
    known: KnownProducer,
    own: ProducerId,
    end: int,
    leader_end: int | SparkmirrorError,
) -> ProducerState | SparkmirrorError:
    """The state that the leader remembers, if it is about this end."""
    if (hindrance := unreplicated(partition, end, leader_end)) is not None:
        return hindrance
    following = (known.last_sequence + 1) % SEQUENCE_MODULUS
    return ProducerState(ProducerId(own.id, known.epoch), following, end)


def unreplicated(
    partition: TopicPartition, end: int, leader_end: int | SparkmirrorError
) -> SparkmirrorError | None:
    """Why nothing can be written at this end yet: the leader may have more than its followers."""
    if isinstance(leader_end, SparkmirrorError):
        return leader_end
    if leader_end == end:
        return None
    return RetriableError(f"{partition}: offsets from {end} on are not replicated: waiting for the followers")
