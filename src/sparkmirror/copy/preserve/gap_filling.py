"""Holds back what must not be written before the target's log is as long as the source's.

The strategy of partitions whose offsets are preserved. Where the next record is beyond
the end, all before it is acknowledged first; then control markers fill up, in the background, for all
partitions that wait at the time; then what is held continues. Also where the source ends with a gap.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.batches.producer import ProducerId, ProducerState
from sparkmirror.batches.record_batch import OutgoingBatch
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.copy_state import Phase
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import (
    Fenced,
    IncidentFound,
    MarkersFailed,
    OffsetMismatch,
    Start,
    TargetBatchFailed,
    TargetRecreated,
)
from sparkmirror.copy.partition_steps import Report
from sparkmirror.copy.preserve.log_start_watch import LogStartWatch
from sparkmirror.copy.resume.claims import transactional_id_of
from sparkmirror.copy.write_strategy import Delivery, HeldBatches, WriteStrategy
from sparkmirror.domain.errors import FencedError, KafkaError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.domain.incidents import offset_gap, offset_mismatch, offset_taken
from sparkmirror.domain.preserving import LONG_GAP_S, MARKERS_PER_S
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.transactions.control_markers import ControlMarkers, Gap, WrongEndError

_log = logging.getLogger(__name__)

_RESTARTING: Final = frozenset({Phase.WAITING, Phase.RESOLVING, Phase.RETRYING, Phase.FENCED, Phase.STOPPED})
"""Phases in which markers that were under way before don't count."""

_WITHOUT_MARKERS: Final = _RESTARTING | {Phase.FAILED}

_GAP_REMEDY: Final = (
    "set it to wait; or, if the source's log starts behind them, let sparkmirror offsets preserve --recreate "
    "recreate the target topic from there on, without what only the target still has"
)


@dataclass(slots=True)
class GapWrites(WriteStrategy):
    """Writes a partition whose offsets are preserved.

    `end` is where the target ends when what was handed to the writer is acknowledged. `is_own` says whether
    data has the claimed epoch: since the first own marker. `reported` is the end of the last gap that was an
    incident.
    """

    copy: PartitionCopy
    claimed: ProducerId
    delivery: Delivery
    fill_soon: "Callable[[GapWrites], None]"
    end: int
    is_own: bool
    reported: int = -1
    held: HeldBatches = field(default_factory=HeldBatches)

    @property
    def is_current(self) -> bool:
        """Whether the partition is written with this still."""
        return self.copy.writes is self

    @property
    def gap_end(self) -> int:
        return self.held.first_offset if self.held else self.copy.fetch_position

    @property
    def is_due(self) -> bool:
        """Whether markers must be written now: nothing before the gap is unanswered."""
        state = self.copy.producer
        return (
            state is not None
            and state.next_offset == self.end < self.gap_end
            and self.is_current
            and self.copy.state.phase not in _WITHOUT_MARKERS
        )

    @property
    def has_held(self) -> bool:
        return len(self.held) > 0

    def started(self) -> None:
        self.fill_soon(self)

    def append(self, batch: OutgoingBatch) -> None:
        """Hand the batch to the writer, now or when the gap before it is filled."""
        if not self.held and batch.offsets[0] == self.end:
            self._send(batch)
            return
        assert batch.is_contiguous, "rules split batches at gaps"
        self.held.append(batch)
        self.fill_soon(self)

    def taken(self) -> OffsetMismatch | None:
        """Return what is in the way of a record that was taken: the target has a marker in its place."""
        self.fill_soon(self)
        if not self.held or self.held.first_offset >= self.end:
            return None
        taken = self.held.first_offset
        return OffsetMismatch(offset_taken(self.copy.plan.target, taken), taken)

    def acknowledged(self, batch: OutgoingBatch, base_offset: int) -> OffsetMismatch | None:
        """Return the mismatch where the batch is not at its offset."""
        target, expected = self.copy.plan.target, batch.offsets[0]
        if base_offset != expected:
            return OffsetMismatch(offset_mismatch(target, base_offset, expected))
        self.copy.has_same_up_to(base_offset + len(batch.offsets))
        self.fill_soon(self)
        return None

    def drop_held(self) -> int:
        return self.held.drop()

    def went_back(self) -> None:
        self.held.drop()
        self.end = self.copy.written_end

    def continue_at(self, end: int) -> None:
        """Continue behind the markers, which have no sequence."""
        copy = self.copy
        assert copy.producer is not None
        self.end = end
        if self.is_own:
            copy.pass_gap(copy.producer._replace(next_offset=end))
        else:
            self.is_own = True
            state = ProducerState(self.claimed, 0, end)
            copy.pass_gap(state)
            self.delivery.writer.begin(copy.plan.target, state, copy.logs.target_id)
        while self.held and self.held.first_offset == self.end:
            self._send(self.held.release())

    def _send(self, batch: OutgoingBatch) -> None:
        self.end += len(batch.offsets)
        self.delivery.writer.append(self.copy.plan.target, batch)


class GapFilling:
    """Fills the gaps of a task's partitions. On the loop's thread only.

    `run` runs a coroutine until the task stops.
    """

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        delivery: Delivery,
        run: Callable[[Coroutine[None, None, None]], object],
        report: Report,
        fenced_pause_s: float,
    ) -> None:
        self._plan = plan
        self._loop = loop
        self._delivery = delivery
        self._run = run
        self._report = report
        self._fenced_pause_s = fenced_pause_s
        self._writes: dict[TopicPartition, GapWrites] = {}
        self._markers = ControlMarkers(plan.producer.connection)
        self._is_filling = False
        self._busy = threading.Lock()
        self._has_ended = False
        self._starts = LogStartWatch(plan.producer.connection)
        self._checking: asyncio.Future[None] | None = None

    def writes(self, copy: PartitionCopy, start: Start) -> GapWrites:
        """The strategy of a partition that starts there."""
        assert start.claimed is not None
        state = start.producer
        is_own = state.producer == start.claimed
        made = self._writes[copy.plan.source] = GapWrites(
            copy, start.claimed, self._delivery, self._fill_soon, state.next_offset, is_own
        )
        self._starts.begin(copy.plan.target, start.log_start)
        return made

    def check(self) -> None:
        """Look now and then, in the background, whether logs start where they should. Once a second.

        And fill gaps of which no record reminds.
        """
        for writes in self._writes.values():
            self._fill_soon(writes)
        is_free = self._checking is None or self._checking.done()
        if is_free and self._starts.is_due(self._loop.time()):
            self._checking = self._loop.run_in_executor(None, self._starts.check)

    def close(self) -> None:
        """Send nothing more. Markers that are being written are left to their thread."""
        self._has_ended = True
        if self._busy.acquire(blocking=False):
            self._markers.close()
            self._busy.release()

    # filling

    def _fill_soon(self, writes: GapWrites) -> None:
        """Fill the gap, together with all others that are due by then."""
        if not self._is_filling and writes.is_due:
            self._is_filling = True
            self._run(self._fill())

    async def _fill(self) -> None:
        try:
            while due := {at: each for at, each in self._writes.items() if each.is_due}:
                gaps = {at: self._gap(at, each) for at, each in due.items()}
                refused = {at: error for at, gap in gaps.items() if (error := self._refusal(due[at], gap))}
                if refused:
                    await self._leave(refused)
                allowed = {at: gap for at, gap in gaps.items() if at not in refused}
                if not allowed:
                    continue
                results = await self._loop.run_in_executor(None, self._filled, list(allowed.values()))
                for at, gap in allowed.items():
                    writes = due[at]
                    if writes.is_current and writes.copy.state.phase not in _RESTARTING:
                        self._settle(writes, gap, results[gap.partition])
                self._delivery.writer.flush()
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

    def _gap(self, source: TopicPartition, writes: GapWrites) -> Gap:
        own_id = transactional_id_of(self._plan, source)
        return Gap(
            own_id,
            writes.claimed,
            writes.copy.plan.target,
            writes.end,
            writes.gap_end,
            is_fenced=writes.is_own,
        )

    def _refusal(self, writes: GapWrites, gap: Gap) -> KafkaError | None:
        """Report a long gap once. Return an error if the user does not want to wait for it."""
        count, preserving = gap.end - gap.begin, self._plan.settings.preserving
        cost_s = count / MARKERS_PER_S
        if cost_s > LONG_GAP_S and writes.reported != gap.end:
            writes.reported = gap.end
            incident = offset_gap(gap.begin, gap.end - 1, cost_s)
            _log.warning("%s: %s", gap.partition, incident.text)
            self._report(writes.copy.plan.source, IncidentFound(incident))
        if preserving.stops_at(cost_s):
            text = f"{gap.partition}: {offset_gap(gap.begin, gap.end - 1, cost_s).text}: {_GAP_REMEDY}"
            return KafkaError(text)
        return None

    async def _leave(self, refused: Mapping[TopicPartition, KafkaError]) -> None:
        """Stop the partitions until a user acts, who may have created the topic again by now."""
        topics = {self._writes[at].copy.plan.target_topic for at in refused}
        ids = await self._loop.run_in_executor(None, self._topic_ids, topics)
        for at, error in refused.items():
            writes = self._writes[at]
            if not writes.is_due:
                continue
            target_id = ids.get(writes.copy.plan.target_topic, b"")
            is_recreated = is_another(writes.copy.logs.target_id, target_id)
            self._report(at, TargetRecreated() if is_recreated else TargetBatchFailed(error, random.random()))

    def _topic_ids(self, topics: Collection[str]) -> Mapping[str, bytes]:
        try:
            return read_metadata(self._plan.producer.connection, topics).topic_ids
        except SparkmirrorError:
            return {}

    def _settle(self, writes: GapWrites, gap: Gap, result: int | SparkmirrorError) -> None:
        source = writes.copy.plan.source
        match result:
            case int():
                writes.continue_at(result)
            case WrongEndError():
                incident = offset_mismatch(gap.partition, result.seen, result.expected)
                self._report(source, OffsetMismatch(incident))
            case FencedError():
                self._report(source, Fenced(result, self._fenced_pause_s))
            case _:
                self._report(source, MarkersFailed(result))
