"""Leaves promoted topics out of a flow, also while it runs: nothing of it is written there any more."""

from collections.abc import Collection, Sequence
from typing import Final

from sparkmirror.connectors.flow_settings import FlowWorker, SourceConfig
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.kafka.offsets import LATEST, list_offsets
from sparkmirror.policies.filters import TopicFilter
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.promotions import migrations_topic, read_promotions

CHECK_INTERVAL_S: Final = 2.0
_ABSENT: Final = -1


class UnpromotedTopics:
    """A topic filter that refuses promoted topics, too."""

    def __init__(self, wanted: TopicFilter) -> None:
        self._wanted = wanted
        self.promoted: Collection[str] = ()

    def should_replicate(self, topic: str) -> bool:
        return topic not in self.promoted and self._wanted.should_replicate(topic)

    def refused_by(self, topic: str) -> str | None:
        if topic in self.promoted:
            return "sparkmirror promote (applications write it on the target)"
        return self._wanted.refused_by(topic)


class PromotedTopics:
    """Reads the records when there are new ones. One owner."""

    def __init__(self, on: FlowWorker, connector: SourceConfig) -> None:
        self._client = on.worker_client
        self._source = on.flow.source
        self._owner = owner_of(on.worker.offset_topic.name, connector.name)
        self._preserves = connector.settings.preserved_topics is not None
        self._end = _ABSENT
        self.filter: Final = UnpromotedTopics(connector.settings.topic_filter)

    def check(self) -> Sequence[str]:
        """What has changed, in words; empty while nothing has. Raises KafkaError."""
        try:
            end = self._read_end()
        except AuthorizationError:
            if self._preserves:
                raise
            return ()  # nothing can be promoted where no offsets are preserved
        if end in (self._end, _ABSENT):  # records that were read count, whatever becomes of the topic
            return ()
        found = frozenset(read_promotions(self._client, self._source, self._owner))
        before, self.filter.promoted, self._end = self.filter.promoted, found, end
        return [
            *(f"{topic} is promoted: it is copied no more" for topic in sorted(found.difference(before))),
            *(f"{topic} is promoted no more: it is copied again" for topic in sorted(set(before) - found)),
        ]

    def _read_end(self) -> int:
        partition = TopicPartition(migrations_topic(self._source), 0)
        end = list_offsets(ConsumerSettings(self._client), [partition], LATEST)[partition]
        if isinstance(end, SparkmirrorError):
            if end.code == UNKNOWN_TOPIC_OR_PARTITION:
                return _ABSENT
            raise end
        return end
