"""Takes what the reader reports of source partitions: batches go to the writer, all else is events."""

import asyncio
import random

from sparkmirror.batches.cycles import CycleError, UnknownWriterError
from sparkmirror.batches.record_batch import writers
from sparkmirror.batches.reencoding import ChangeFailedError
from sparkmirror.copy import partition_events as events
from sparkmirror.copy.bad_batches import BadBatches
from sparkmirror.copy.buffer import Buffer
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.cycle_detection import CycleDetection
from sparkmirror.copy.fetch_control import FetchControl
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Event
from sparkmirror.copy.partition_steps import PartitionSteps
from sparkmirror.copy.write_strategy import Delivery
from sparkmirror.domain.errors import CorruptBatchError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import IncidentKind, cycle_found
from sparkmirror.kafka.data.batch_reader import BatchReader
from sparkmirror.kafka.wire.fetch import FetchedPartition


class SourceListener:
    """The listener of `reader`. `fetched` asks no state unless something changes. On the loop's thread."""

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        steps: PartitionSteps,
        buffer: Buffer,
        cycles: CycleDetection,
        delivery: Delivery,
    ) -> None:
        self._plan = plan
        self._steps = steps
        self._buffer = buffer
        self._cycles = cycles
        self._delivery = delivery
        self._bad_batches = BadBatches(plan)
        self.reader = BatchReader(plan.consumer, loop, self)
        self.fetching = FetchControl(plan, loop, steps, buffer, self.reader)

    def budget_bytes(self) -> int:
        return self.fetching.budget_bytes()

    def fetched(self, fetched: FetchedPartition) -> None:
        copy = self._steps.of(fetched.partition)
        if copy.state.fetch_error is not None:
            self._steps.take(copy, events.FetchWorks())
        read_committed = self._plan.consumer.read_committed
        end_offset = fetched.last_stable_offset if read_committed else fetched.high_watermark
        copy.read(end_offset, self.reader.read_epoch(fetched.partition))
        before = copy.outstanding_bytes
        obstacle = self._take(copy, fetched)
        self.fetching.taken(fetched.partition, copy.outstanding_bytes - before)
        obstacle = copy.writes.taken() or obstacle
        if obstacle is None:
            self.fetching.fetch_next(copy)
        else:
            self._steps.take(copy, obstacle)
        if copy.looped and not copy.incidents[IncidentKind.LOOP]:
            self._note_cycle(copy)

    def _take(self, copy: PartitionCopy, fetched: FetchedPartition) -> Event | None:
        """Hand on what the buffer has room for. Return what is in the way of the next batch."""
        append = copy.writes.append
        try:
            for batch in copy.take(fetched, self._buffer.takeable_bytes):
                append(batch)
        except CorruptBatchError as error:
            return self._bad_batches.unreadable(copy, fetched, error)
        except ChangeFailedError as error:
            return self._bad_batches.unchangeable(copy, error)
        except UnknownWriterError:
            return events.WritersUnknown(writers(fetched.records))
        except CycleError as error:
            refusal = self._cycles.refusal(copy.plan, error)
            return events.SourceBatchFailed(refusal, random.random())
        return None

    def response_taken(self) -> int:
        self._delivery.writer.flush()
        return self.fetching.budget_bytes()

    def fetch_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        self._steps.report(partition, events.FetchFailed(error))

    def fetch_works(self, partition: TopicPartition) -> None:
        copy = self._steps.of(partition)
        if copy.state.fetch_error is not None:
            self._steps.take(copy, events.FetchWorks())

    def offset_out_of_range(self, partition: TopicPartition) -> None:
        self._steps.report(partition, events.OutOfRange())

    def source_diverged(self, partition: TopicPartition, at: int, epoch: int) -> None:
        self._steps.report(partition, events.Diverged(at, epoch))

    def source_recreated(self, partition: TopicPartition) -> None:
        self._steps.report(partition, events.SourceRecreated())

    def _note_cycle(self, copy: PartitionCopy) -> None:
        """Report that two clusters mirror each other, which is no error."""
        assert copy.cycles is not None
        assert copy.cycles.first is not None
        found = cycle_found(*copy.cycles.first, *self._plan.flow)
        self._steps.take(copy, events.IncidentFound(found))
