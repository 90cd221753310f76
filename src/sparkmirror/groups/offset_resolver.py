"""Looks up offsets between two syncs in the logs of both clusters, a bounded part of them at a time.

What is found is kept in the partitions' histories; an offset that can't be resolved is not looked up again.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sparkmirror.batches.record_batch import CONTROL, FetchedBatch
from sparkmirror.connectors.flow_log import FlowLog
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, CorruptBatchError, KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.partition_reader import SpanReader
from sparkmirror.offsets.offset_runs import Gap
from sparkmirror.offsets.resolution import resolve
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.storage.producer_id_topic import WriterDirectory

GAP_BYTES: Final = 4 << 20
"""The bytes of each log that are read for one offset and round; the next round continues from there."""
ROUND_BYTES: Final = 64 << 20
_FUTILE_MAX: Final = 100_000


class Wanted(NamedTuple):
    """A group's offset on the source, and its place on the target as far as it is known."""

    source: TopicPartition
    upstream: int
    target: TopicPartition
    history: SyncHistory


class OffsetResolver:
    """One owner. Connects when it's first asked."""

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
        self._futile: dict[tuple[TopicPartition, int], Gap] = {}
        self._is_refused = False

    def resolve(self, wanted: Iterable[Wanted], time_limit_s: float) -> set[Wanted]:
        """Let the histories learn, the nearest first. Those that are exact now, or never will be."""
        deadline = time.monotonic() + time_limit_s
        stop = self.bytes_read + ROUND_BYTES
        settled: set[Wanted] = set()
        for each in sorted(wanted, key=_distance):
            if self._is_refused or time.monotonic() > deadline or self.bytes_read > stop:
                break
            if self._is_settled(each):
                settled.add(each)
        return settled

    def close(self) -> None:
        self._source.close()
        self._target.close()

    @property
    def bytes_read(self) -> int:
        """Of both logs, ever."""
        return self._source.bytes_read + self._target.bytes_read

    def _is_settled(self, wanted: Wanted) -> bool:
        gap, name = wanted.history.gap_at(wanted.upstream), (wanted.source, wanted.upstream)
        if gap is None or self._futile.get(name) == gap:
            return True
        try:
            self._look(wanted, gap)
        except AuthorizationError as error:
            self._is_refused = True
            self._log.info("offsets between two syncs stay approximate: %s", error)
            return False
        except CorruptBatchError as error:
            self._log.warning("%s: the records between two syncs can't be resolved: %s", wanted.source, error)
        except KafkaError as error:
            self._log.info("%s: the records between two syncs can't be read: %s", wanted.source, error)
            return False
        left = wanted.history.gap_at(wanted.upstream)
        if left == gap:
            if len(self._futile) >= _FUTILE_MAX:
                self._futile.clear()
            self._futile[name] = gap
        return left is None or left == gap

    def _look(self, wanted: Wanted, gap: Gap) -> None:
        (after, begin), (before, end) = gap
        copied = self._source.read(wanted.source, after, before, GAP_BYTES)
        copies = self._target.read(wanted.target, begin, end, GAP_BYTES)
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


def _distance(wanted: Wanted) -> int:
    gap = wanted.history.gap_at(wanted.upstream)
    return 0 if gap is None else wanted.upstream - gap.after.upstream
