"""Goes on with partitions whose offsets can be preserved no more, as with any other (`offsets.on.mismatch`).

That they are such is stored with their positions, and holds as long as the target topic is the same.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.copy.partition_events import ResumeReason, Start
from sparkmirror.copy.resume.resumption import Resumption
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.domain.incidents import offsets_translated
from sparkmirror.kafka.cluster import read_metadata


@dataclass(frozen=True, slots=True)
class TranslatedResume:
    """Blocks."""

    plan: TaskPlan
    resumption: Resumption

    @property
    def is_wanted(self) -> bool:
        return self.plan.settings.preserving.goes_on_translated

    def known(self, reasons: Mapping[TopicPartition, ResumeReason]) -> Collection[TopicPartition]:
        """Those of them that go on so since an earlier mismatch. Raises KafkaError."""
        logs = {
            source: reason.position.logs
            for source, reason in reasons.items()
            if reason.position is not None and reason.position.is_translated and self.is_wanted
        }
        if not logs:
            return ()
        targets = {each.source: each.target_topic for each in self.plan.partitions if each.source in logs}
        ids = read_metadata(self.plan.producer.connection, set(targets.values())).topic_ids
        return {
            source
            for source, topic in targets.items()
            if not is_another(logs[source].target_id, ids.get(topic, b""))
        }

    def starts(
        self, reasons: Mapping[TopicPartition, ResumeReason], mismatches: Mapping[TopicPartition, str]
    ) -> Mapping[TopicPartition, Start | SparkmirrorError]:
        """The start of each partition, or why it can't start now. `mismatches` are new ones: incidents."""
        if not reasons:
            return {}
        try:
            starts = self.resumption.starts(reasons)
        except SparkmirrorError as error:
            return dict.fromkeys(reasons, error)
        return {source: _noted(each, mismatches.get(source)) for source, each in starts.items()}


def _noted(start: Start | SparkmirrorError, mismatch: str | None) -> Start | SparkmirrorError:
    if mismatch is None or isinstance(start, SparkmirrorError):
        return start
    return start._replace(incident=offsets_translated(mismatch, start.position))
