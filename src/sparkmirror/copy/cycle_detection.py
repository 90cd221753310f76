"""Detects records that come back: records the task's own producer ids, and looks up those of others."""

import logging
from collections.abc import Collection, Iterable

from sparkmirror.batches.cycles import CycleError, CycleFilter
from sparkmirror.batches.provenance_header import ProvenanceHeader
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.errors import AuthorizationError, KafkaError
from sparkmirror.domain.incidents import Incident, OnLoop, loops_unseen
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.storage.producer_id_topic import OwnProducerIds, WriterDirectory

_log = logging.getLogger(__name__)


class CycleDetection:
    """Detects cycles, except where names show where records came from. Safe in any thread."""

    def __init__(self, plan: TaskPlan) -> None:
        self._flow = plan.flow
        self._on_loop = plan.settings.reactions.on_loop
        source, target = plan.consumer.connection, plan.producer.connection
        self._own = None if plan.names_show_origin else OwnProducerIds(plan.flow.source, source, target)
        detects = not plan.names_show_origin and self._on_loop is not OnLoop.COPY
        self._directory = WriterDirectory(source, target) if detects else None
        self._header = ProvenanceHeader(*plan.flow) if plan.settings.provenance_header else None
        self.unseen: Incident | None = None
        """Why cycles can't be detected, if that is so."""

    def record(self, producer_ids: Iterable[int]) -> None:
        """Return when batches may carry these. Blocks. Raises KafkaError."""
        if self._own is not None:
            self._own.record(producer_ids)

    def filter(self) -> CycleFilter | None:
        """Make the filter of one partition; None where nothing is left out."""
        return (
            None
            if self._directory is None
            else CycleFilter(self._directory.known, self._on_loop, self._header)
        )

    def refusal(self, plan: CopyPartition, found: CycleError) -> KafkaError:
        """The error under `on.loop=fail`, with what to do."""
        first, last = found.offsets
        source, target = self._flow
        return KafkaError(
            f"{plan.source}: offsets {first} to {last} were mirrored from {target} to {source}, and on.loop "
            "is fail. Set it to filter to leave such records out, to copy to send them round, or exclude the "
            "topic in one of the two flows"
        )

    def look_up(self, producer_ids: Collection[int]) -> None:
        """The filters know them afterwards. Blocks. Raises KafkaError."""
        if self._directory is None:
            return
        try:
            self._directory.look_up(producer_ids)
        except AuthorizationError as error:
            if self._on_loop is OnLoop.FAIL:
                raise
            if self.unseen is None:
                self.unseen = loops_unseen(error)
                _log.warning("%s", self.unseen.text)
            self._directory.known.learn((), producer_ids)
