"""Looks up offsets between two syncs in the logs of both clusters, a bounded part of them at a time.

What is found is kept in the partitions' histories. An offset that was found, or that can't be, is not looked
up again.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, CorruptBatchError, KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.offsets.offset_runs import Gap, Known
from sparkmirror.offsets.resolution import resolve
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.storage.producer_id_topic import WriterDirectory

_GAP_BYTES_MAX: Final = 4 << 20
"""The bytes of each log that are read for one offset and round; the next round continues from there."""
_ENDED_MAX: Final = 100_000
_LOGGED_MAX: Final = 20


class Wanted(NamedTuple):
    """A group's offset on the source, and its place on the target as far as it is known."""

    source: TopicPartition
    upstream: int
    target: TopicPartition
    history: SyncHistory


class Budget(NamedTuple):
    """The most that one round reads of both logs together, and how long it takes.

    A look-up that has begun is ended, so it may be a little more.
    """

    bytes_max: int
    time_limit_s: float


@dataclass(slots=True)
class Round:
    """`settled` are exact now, or never will be; `left_over` were not reached before the budget was spent."""

    looked_up: set[Wanted] = field(default_factory=set)
    settled: set[Wanted] = field(default_factory=set)
    left_over: set[Wanted] = field(default_factory=set)


class OffsetResolver:
    """Looks up offsets in both logs. It connects with the first look-up."""

    def __init__(
        self,
        source: ConsumerSettings,
        target: ConsumerSettings,
        log: FlowLog,
        *,
        names_show_origin: bool = True,
    ) -> None:
        """`source` reads what the mirror copies; where names don't show cycles, producer ids do."""
        self._source = SpanReader(source)
        self._target = SpanReader(target)
        self._log = log
        self._writers = None if names_show_origin else WriterDirectory(source.connection, target.connection)
        self._ended: dict[tuple[TopicPartition, int], Known] = {}
        """The last known record before an offset, or its own place, when its look-up was at its end."""
        self._refused: dict[str, str] = {}
        """Why topics may not be read."""
        self._refusals = LogOnce(log, logging.INFO, _LOGGED_MAX, "and %d more topics")

    def resolve(self, wanted: Iterable[Wanted], budget: Budget) -> Round:
        """Let the histories learn, in this order."""
        done, deadline = Round(), time.monotonic() + budget.time_limit_s
        stop = self.bytes_read + budget.bytes_max
        gap_bytes = min(_GAP_BYTES_MAX, budget.bytes_max // 2)
        self._source.forget()
        self._target.forget()
        for each in dict.fromkeys(wanted):
            if self._is_ended(each):
                done.settled.add(each)
            elif each.source.topic in self._refused:
                continue
            elif time.monotonic() > deadline or self.bytes_read >= stop:
                done.left_over.add(each)
            else:
                done.looked_up.add(each)
                if self._is_settled(each, gap_bytes):
                    done.settled.add(each)
        self._refusals.log(self._refused.values())
        return done

    def look_up(self, wanted: Wanted, gap_bytes: int = _GAP_BYTES_MAX) -> bool:
        """Look once. Whether its history has learned something. Raises KafkaError and CorruptBatchError."""
        gap = wanted.history.gap_at(wanted.upstream)
        if gap is None:
            return False
        self._look(wanted, gap, gap_bytes)
        return wanted.history.gap_at(wanted.upstream) != gap

    def close(self) -> None:
        self._source.close()
        self._target.close()

    @property
    def bytes_read(self) -> int:
        """Return the bytes that were read of both logs since it was made."""
        return self._source.bytes_read + self._target.bytes_read

    def _is_ended(self, wanted: Wanted) -> bool:
        """Whether a look-up needs no further step, also when its history has forgotten what was found."""
        gap = wanted.history.gap_at(wanted.upstream)
        if gap is None:
            return True
        known = self._ended.get((wanted.source, wanted.upstream))
        return known is not None and gap.after <= known and not wanted.history.refutes(*known)

    def _is_settled(self, wanted: Wanted, gap_bytes: int) -> bool:
        try:
            has_learned = self.look_up(wanted, gap_bytes)
        except AuthorizationError as error:
            self._refused[wanted.source.topic] = f"offsets between two syncs stay approximate: {error}"
            return False
        except CorruptBatchError as error:
            self._log.warning("%s: the records between two syncs can't be resolved: %s", wanted.source, error)
            has_learned = False
        except KafkaError as error:
            self._log.info("%s: the records between two syncs can't be read: %s", wanted.source, error)
            return False
        gap, place = wanted.history.gap_at(wanted.upstream), wanted.history.place(wanted.upstream)
        if gap is not None and has_learned:
            return False
        if len(self._ended) >= _ENDED_MAX:
            self._ended.clear()
        assert place is not None, "only an offset with a place has a gap"
        exact = Known(wanted.upstream, place.offset)
        self._ended[wanted.source, wanted.upstream] = exact if gap is None else gap.after
        return True

    def _look(self, wanted: Wanted, gap: Gap, gap_bytes: int) -> None:
        (after, begin), (before, end) = gap
        copied = self._source.read(wanted.source, after, before, gap_bytes)
        copies = self._target.read(wanted.target, begin, end, gap_bytes)
        wanted.history.learn(resolve(gap, wanted.upstream, self._records(copied), copies))

    def _records(self, batches: Iterable[FetchedBatch]) -> Iterator[FetchedBatch]:
        """The records that a mirror copies, of those that were read."""
        for batch in batches:
            header = batch.header
            if not header.attributes & CONTROL and not self._comes_back(header.producer_id):
                yield batch

    def _comes_back(self, producer_id: int) -> bool:
        if self._writers is None:
            return False
        try:
            self._writers.look_up([producer_id])
        except AuthorizationError:  # which keeps the mirror from leaving anything out, too
            self._writers.known.learn((), [producer_id])
        return bool(self._writers.known.are_from_target(producer_id))
