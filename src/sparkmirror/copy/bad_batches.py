"""Tells what follows from a batch that can't be copied: the partition waits for a remedy, or skips it."""

import random
import time
from dataclasses import dataclass

from sparkmirror.batches.record_batch import OutgoingBatch, end_of_batch
from sparkmirror.batches.reencoding import ChangeFailedError
from sparkmirror.copy import partition_events as events
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.dead_letters import is_about_the_batch, with_fix
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Event
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, SparkmirrorError
from sparkmirror.domain.incidents import OnBadBatch
from sparkmirror.kafka.wire.fetch import FetchedPartition
from sparkmirror.storage.dead_letters import DeadLetter


@dataclass(frozen=True, slots=True)
class BadBatches:
    """Decides by the plan's `on.bad.batch`, and by `errors.tolerance` where a transform fails."""

    plan: TaskPlan

    def unreadable(self, copy: PartitionCopy, fetched: FetchedPartition, error: CorruptBatchError) -> Event:
        """The event of a batch at the copy's `fetch_position`. It can't be skipped if its end is unknown."""
        refusal = KafkaError(f"{fetched.partition} on {self.plan.consumer.connection.cluster}: {error}")
        end = end_of_batch(fetched.records, copy.fetch_position)
        if self._skips and end is not None:
            return events.SourceBatchSkipped(_letter(copy, refusal, copy.fetch_position, end - 1))
        return events.SourceBatchFailed(self._with_fix(copy, refusal), random.random())

    def unchangeable(self, copy: PartitionCopy, error: ChangeFailedError) -> Event:
        """The event of a record that a transform fails with."""
        failed = KafkaError(f"{copy.plan.source}: offset {error.offset}: {error}")
        if copy.change is not None and copy.change.tolerates:
            return events.SourceBatchSkipped(_letter(copy, failed, error.offset, error.offset))
        remedy = "change the function and start again; errors.tolerance=all leaves such records out"
        return events.SourceBatchFailed(KafkaError(f"{failed}; {remedy}"), random.random())

    def refused(self, copy: PartitionCopy, batch: OutgoingBatch, error: SparkmirrorError) -> Event:
        """The event of a batch that the target has refused."""
        if not is_about_the_batch(error):
            return events.TargetBatchFailed(error, random.random())
        if self._skips:
            return events.TargetBatchSkipped(_letter(copy, error, batch.offsets[0], batch.offsets[-1]))
        return events.TargetBatchFailed(self._with_fix(copy, error), random.random())

    @property
    def _skips(self) -> bool:
        return self.plan.settings.reactions.on_bad_batch is OnBadBatch.SKIP

    def _with_fix(self, copy: PartitionCopy, error: SparkmirrorError) -> KafkaError:
        return with_fix(error, copy.plan.target_topic, self.plan.producer.connection.cluster)


def _letter(copy: PartitionCopy, error: SparkmirrorError, first: int, last: int) -> DeadLetter:
    return DeadLetter(copy.plan.source, first, last, str(error), time.time())
