"""Leaves promoted topics out of a flow, also while it runs: nothing of it is written there any more."""

from collections.abc import Sequence
from typing import Final

from sparkmirror.policies.filters import TopicFilter
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.promotions import Promotions, PromotionsReader

CHECK_INTERVAL_S: Final = 2.0


class UnpromotedTopics:
    """A topic filter that refuses promoted topics, too."""

    def __init__(self, wanted: TopicFilter) -> None:
        self._wanted = wanted
        self.promoted: Promotions = {}

    def should_replicate(self, topic: str) -> bool:
        return topic not in self.promoted and self._wanted.should_replicate(topic)

    def refused_by(self, topic: str) -> str | None:
        if topic in self.promoted:
            return "sparkmirror promote (applications write it on the target)"
        return self._wanted.refused_by(topic)


def promotions_reader(on: FlowWorker, connector: ConfiguredSource) -> PromotionsReader:
    return PromotionsReader(
        on.worker_client,
        on.flow.source,
        owner_of(on.worker.offset_topic.name, connector.name),
        is_preserving=connector.settings.preserved_topics is not None,
    )


class PromotedTopics:
    """Keeps `filter` as the records are. One owner."""

    def __init__(self, on: FlowWorker, connector: ConfiguredSource) -> None:
        self._reader = promotions_reader(on, connector)
        self.filter: Final = UnpromotedTopics(connector.settings.topic_filter)

    def check(self) -> Sequence[str]:
        """Return what has changed, in words; empty while nothing has. Raises KafkaError."""
        before = self.filter.promoted
        found = self.filter.promoted = self._reader.read()
        return [
            *(f"{topic} is promoted: it is copied no more" for topic in sorted(found.keys() - before.keys())),
            *(
                f"{topic} is promoted no more: it is copied again"
                for topic in sorted(before.keys() - found.keys())
            ),
        ]
