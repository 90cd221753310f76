"""Holds back what must not be written before the target's log is as long as the source's.

For partitions whose offsets are preserved, in the place of `AttemptWrites`. Where the next record is beyond
the end, all before it is acknowledged first; then control markers fill up, in the background, for all
partitions that wait at the time; then what is held goes on. Also where the source ends with a gap.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import (
    Event,
    Fenced,
    MarkersFailed,
    OffsetMismatch,
    Start,
    TargetBatchFailed,
    TargetRecreated,
)
from sparkmirror.copy.preserve.log_start_watch import LogStartWatch
from sparkmirror.copy.resume.attempt_writes import Writer
from sparkmirror.copy.resume.claims import transactional_id_of
from sparkmirror.domain.errors import FencedError, KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.domain.incidents import offset_gap, offset_mismatch, offset_taken
from sparkmirror.domain.preserving import LONG_GAP_S, MARKERS_PER_S
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.transactions.control_markers import ControlMarkers, Gap, WrongEndError

_log = logging.getLogger(__name__)

_RESTARTING: Final = frozenset({Phase.WAITING, Phase.RESOLVING, Phase.RETRYING, Phase.FENCED, Phase.STOPPED})
"""What was under way before does not count in these."""

_WITHOUT_MARKERS: Final = _RESTARTING | {Phase.FAILED}

_GAP_REMEDY: Final = (
    "set it to wait; or, if the source's log starts behind them, let sparkmirror offsets preserve --recreate "
    "make the target topic anew from there on, without what only the target still has"
)


@dataclass(slots=True)
class _Writing:
    """`end` is where the target ends when what was handed to the writer is acknowledged."""

    copy: PartitionCopy
    claimed: ProducerId
    end: int
    is_own: bool
    """Whether data has the claimed epoch: since the first own marker."""
    reported: int = -1
    """The end of the last gap that was an incident."""

    @property
    def gap_end(self) -> int:
        return self.copy.held.first_offset if self.copy.held else self.copy.fetch_position

    @property
    def is_due(self) -> bool:
        """Whether markers must be written now: nothing before the gap is unanswered."""
        state = self.copy.producer
        return (
            state is not None
            and self.copy.state.phase not in _WITHOUT_MARKERS
            and state.next_offset == self.end < self.gap_end
        )


class GapFilling:
    """On the loop's thread only. `run` runs a coroutine until the pipeline stops."""

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        writer: Callable[[], Writer],
        run: Callable[[Coroutine[None, None, None]], object],
        report: Callable[[TopicPartition, Event], None],
        fenced_pause_s: float,
    ) -> None:
        self._plan = plan
        self._loop = loop
        self._writer = writer
        self._run = run
        self._report = report
        self._fenced_pause_s = fenced_pause_s
        self._writings: dict[TopicPartition, _Writing] = {}
        self._markers = ControlMarkers(plan.producer.connection)
        self._is_filling = False
        self._busy = threading.Lock()
        self._has_ended = False
        self._starts = LogStartWatch(plan.producer.connection)
        self._checking: asyncio.Future[None] | None = None

    def begin(self, copy: PartitionCopy, start: Start) -> None:
        """Write from there on."""
        assert start.claimed is not None
        copy.held.drop()
        state = start.producer
        writing = _Writing(copy, start.claimed, state.next_offset, state.producer == start.claimed)
        self._writings[copy.plan.source] = writing
        self._starts.begin(copy.plan.target, start.log_start)
        self._fill_soon(writing)

    def end(self, copy: PartitionCopy) -> None:
        """Its offsets are preserved no more."""
        self._writings.pop(copy.plan.source, None)

    def append(self, copy: PartitionCopy, batch: OutgoingBatch) -> None:
        """Hand the batch to the writer, now or when it is its turn."""
        writing = self._writings[copy.plan.source]
        if not copy.held and batch.offsets[0] == writing.end:
            writing.end += len(batch.offsets)
            self._writer().append(copy.plan.target, batch)
            return
        assert batch.is_contiguous, "rules split batches at gaps"
        copy.held.append(batch)
        self._fill_soon(writing)

    def mismatch(self, copy: PartitionCopy) -> OffsetMismatch | None:
        """What is in the way of a record that was taken: the target has a marker in its place."""
        writing = self._writings.get(copy.plan.source)
        if writing is None or not copy.held or copy.held.first_offset >= writing.end:
            return None
        taken = copy.held.first_offset
        return OffsetMismatch(offset_taken(copy.plan.target, taken), taken)

    def moved(self, copy: PartitionCopy) -> None:
        """Something was taken or acknowledged: perhaps a gap is due."""
        writing = self._writings.get(copy.plan.source)
        if writing is not None:
            self._fill_soon(writing)

    def dropped(self, copy: PartitionCopy) -> None:
        """The copy has gone back: its next batch begins at its `fetch_position`."""
        copy.held.drop()
        if writing := self._writings.get(copy.plan.source):
            writing.end = copy.written_end

    def check(self) -> None:
        """Look now and then, in the background, whether logs start where they should. Once a second.

        And fill gaps of which no record reminds.
        """
        for writing in self._writings.values():
            self._fill_soon(writing)
        is_free = self._checking is None or self._checking.done()
        if is_free and self._starts.is_due(self._loop.time()):
            self._checking = self._loop.run_in_executor(None, self._starts.check)

    def close(self) -> None:
        """Nothing is sent any more. Markers that are being written are left to their thread."""
        self._has_ended = True
        if self._busy.acquire(blocking=False):
            self._markers.close()
            self._busy.release()

    # filling

    def _fill_soon(self, writing: _Writing) -> None:
        """With all others that are due by then."""
        if not self._is_filling and writing.is_due:
            self._is_filling = True
            self._run(self._fill())

    async def _fill(self) -> None:
        try:
            while due := {at: each for at, each in self._writings.items() if each.is_due}:
                gaps = {at: self._gap(at, each) for at, each in due.items()}
                refused = {at: error for at, gap in gaps.items() if (error := self._refusal(due[at], gap))}
                if refused:
                    await self._leave(refused)
                allowed = {at: gap for at, gap in gaps.items() if at not in refused}
                if not allowed:
                    continue
                results = await self._loop.run_in_executor(None, self._filled, list(allowed.values()))
                for at, gap in allowed.items():
                    writing, result = due[at], results[gap.partition]
                    if self._writings.get(at) is writing and writing.copy.state.phase not in _RESTARTING:
                        self._settle(writing, gap, result)
                self._writer().flush()
        finally:
            self._is_filling = False

    def _filled(self, gaps: list[Gap]) -> Mapping[TopicPartition, int | SparkmirrorError]:
        with self._busy:
            try:
                return {} if self._has_ended else self._markers.fill(gaps)
            except SparkmirrorError as error:
                return dict.fromkeys((gap.partition for gap in gaps), error)
            finally:
                if self._has_ended:
                    self._markers.close()

    def _gap(self, source: TopicPartition, writing: _Writing) -> Gap:
        own_id = transactional_id_of(self._plan, source)
        return Gap(
            own_id,
            writing.claimed,
            writing.copy.plan.target,
            writing.end,
            writing.gap_end,
            is_fenced=writing.is_own,
        )

    def _refusal(self, writing: _Writing, gap: Gap) -> KafkaError | None:
        """A long gap is said, once, and filled if the user wants to wait."""
        count, preserving = gap.end - gap.begin, self._plan.settings.preserving
        cost_s = count / MARKERS_PER_S
        if cost_s > LONG_GAP_S and writing.reported != gap.end:
            writing.reported = gap.end
            incident = offset_gap(gap.begin, gap.end - 1, cost_s)
            _log.warning("%s: %s", gap.partition, incident.text)
            writing.copy.note(incident)
        if preserving.stops_at(cost_s):
            text = f"{gap.partition}: {offset_gap(gap.begin, gap.end - 1, cost_s).text}: {_GAP_REMEDY}"
            return KafkaError(text)
        return None

    async def _leave(self, refused: Mapping[TopicPartition, KafkaError]) -> None:
        """To a person, who may have made the topic anew by now."""
        topics = {self._writings[at].copy.plan.target_topic for at in refused}
        ids = await self._loop.run_in_executor(None, self._topic_ids, topics)
        for at, error in refused.items():
            writing = self._writings.get(at)
            if writing is None or not writing.is_due:
                continue
            target_id = ids.get(writing.copy.plan.target_topic, b"")
            is_anew = is_another(writing.copy.logs.target_id, target_id)
            self._report(at, TargetRecreated() if is_anew else TargetBatchFailed(error, random.random()))

    def _topic_ids(self, topics: Collection[str]) -> Mapping[str, bytes]:
        try:
            return read_metadata(self._plan.producer.connection, topics).topic_ids
        except SparkmirrorError:
            return {}

    def _settle(self, writing: _Writing, gap: Gap, result: int | SparkmirrorError) -> None:
        source = writing.copy.plan.source
        match result:
            case int():
                self._go_on(writing, result)
            case WrongEndError():
                incident = offset_mismatch(gap.partition, result.seen, result.expected)
                self._report(source, OffsetMismatch(incident))
            case FencedError():
                self._report(source, Fenced(result, self._fenced_pause_s))
            case _:
                self._report(source, MarkersFailed(result))

    def _go_on(self, writing: _Writing, end: int) -> None:
        """Behind the markers, which have no sequence."""
        copy = writing.copy
        assert copy.producer is not None
        writing.end = copy.same_end = end
        if writing.is_own:
            copy.producer = copy.producer._replace(next_offset=end)
        else:
            writing.is_own = True
            copy.producer = ProducerState(writing.claimed, 0, end)
            self._writer().begin(copy.plan.target, copy.producer, copy.logs.target_id)
        while copy.held and copy.held.first_offset == writing.end:
            batch = copy.held.release()
            writing.end += len(batch.offsets)
            self._writer().append(copy.plan.target, batch)
