"""Tells which partitions appeared after a flow's first start: they are copied from their first record.

`auto.offset.reset` applies to the others without a position: those that were there at the first start, and
those that a changed filter selects for the first time. With `earliest` all begin alike: nothing is asked.
"""

from collections.abc import Collection, Container, Mapping
from contextlib import closing

from sparkmirror.domain.client_settings import ConsumerSettings, OffsetReset
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.topics import TopicListing
from sparkmirror.kafka.data.partition_offsets import EARLIEST, list_offsets, reset_offsets
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.seen_topics import SeenTopics, is_new, listed, read_seen_topics, seen_records


def left_out_of(
    consumer: ConsumerSettings, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Count what is there and not to be copied, of partitions that are not new. Raises KafkaError."""
    if consumer.offset_reset in (OffsetReset.EARLIEST, OffsetReset.NONE) or not partitions:
        return {}
    starts, begins = list_offsets(consumer, partitions, EARLIEST), reset_offsets(consumer, partitions)
    counts = {
        at: begin - start
        for at, start in starts.items()
        if isinstance(start, int) and isinstance(begin := begins.get(at), int)
    }
    return {at: count for at, count in counts.items() if count}


class NewPartitions:
    """Finds partitions that appeared after the first start. Methods block, and raise KafkaError."""

    def __init__(self, on: FlowWorker, connector: ConfiguredSource) -> None:
        self._client = on.worker_client
        self._topic = StateTopic.ATTEMPTS.of(on.flow.source)
        self._owner = owner_of(on.worker.offset_topic.name, connector.name)
        self.matter = connector.consumer_of(0).offset_reset is not OffsetReset.EARLIEST
        """Whether it matters what is new."""
        self.predecessor: str | None = None
        """The owner of attempts before this one: what it has seen counts at the own first start."""
        self._seen: SeenTopics | None = None
        self._is_inherited = False

    def among(
        self, partitions: Collection[TopicPartition], listing: TopicListing
    ) -> Collection[TopicPartition]:
        """Return the partitions that are new; none before the first start."""
        if not self.matter:
            return ()
        seen, now = self._known(), listed(listing)
        return () if seen is None else {at for at in partitions if is_new(at, seen, now)}

    def remember(self, listing: TopicListing, selected: Container[str]) -> None:
        """Remember all topics at the first start, and later those that are not selected."""
        if not self.matter:
            return
        before, now = self._known(), listed(listing)
        seen = now
        if before is not None:
            kept = {
                topic: found
                for topic, found in before.items()
                if topic in listing.topics and (topic in selected or topic not in now)
            }
            seen = kept | {topic: found for topic, found in now.items() if topic not in selected}
        if records := seen_records(self._owner, None if self._is_inherited else before, seen):
            with closing(TopicWriter(self._client)) as writer:
                writer.write(self._topic, records)
        self._seen, self._is_inherited = seen, False

    def _known(self) -> SeenTopics | None:
        if self._seen is None:
            self._seen = read_seen_topics(self._client, self._topic, self._owner)
            if self._seen is None and self.predecessor is not None:
                self._seen = read_seen_topics(self._client, self._topic, self.predecessor)
                self._is_inherited = self._seen is not None
        return self._seen
