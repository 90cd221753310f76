"""Finds target topics that were deleted, or deleted and created again: also those of idle source topics."""

from collections.abc import Iterable

from sparkmirror.domain.ids import is_another
from sparkmirror.domain.topics import TopicListing
from sparkmirror.settings.copy_partition import CopyPartition


class RecreatedTargets:
    """Remembers the ids of the target topics that are copied to. One owner."""

    def __init__(self) -> None:
        self._listing: TopicListing | None = None
        self._ids: dict[str, bytes] = {}

    def found(self, listing: TopicListing, partitions: Iterable[CopyPartition]) -> list[str]:
        """The topics that have another id than at the last look; an equal listing is the same object."""
        if listing is self._listing:
            return []
        before, self._listing = self._ids, listing
        wanted = {partition.target_topic for partition in partitions}
        # One that is gone keeps its id, so that its successor is known for another topic.
        self._ids = before | {
            topic: listing.topics[topic].topic_id for topic in wanted if topic in listing.topics
        }
        return sorted(
            topic for topic, topic_id in self._ids.items() if is_another(before.get(topic, b""), topic_id)
        )
