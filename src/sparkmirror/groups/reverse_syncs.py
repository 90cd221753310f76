"""Reads the offset syncs of the opposite flow, for groups that return to their first cluster (KIP-1098)."""

from collections.abc import Mapping

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.settings.configured import ConfiguredCheckpoint
from sparkmirror.storage.offset_sync_topic import OffsetSyncsReader, RunSync


class ReverseSyncs:
    """Inverts the syncs of `A->B` for `B->A`: histories from B's copies back to A's own partitions.

    One owner.

    There are none unless `reverse.checkpointing.enabled` is set.
    """

    def __init__(self, connector: ConfiguredCheckpoint) -> None:
        settings = connector.settings
        policy, target = settings.policy, settings.flow.target

        def turned(sync: RunSync) -> RunSync:
            return sync.reversed(policy.format_remote_topic(target, sync.sync.topic_partition.topic))

        # The opposite flow has the two sides the other way round, and its topic on the other one.
        records = connector.records_consumer.connection
        there = connector.checkpoints_consumer if settings.offset_syncs_on_source else records
        topic = settings.reverse_syncs_topic
        self._there, self._topic, self._is_topic_there = there, topic, False
        self._reader = None if topic is None else OffsetSyncsReader(there, topic, turned=turned)

    @property
    def histories(self) -> Mapping[TopicPartition, SyncHistory]:
        """Return histories by the source's partitions, as of the last `catch_up`."""
        return {} if self._reader is None else self._reader.histories

    def catch_up(self, deadline_s: float, *, newest_only: bool = False) -> KafkaError | None:
        """The error that keeps it from reading further; only groups that return wait for it."""
        if self._reader is None or self._topic is None:
            return None
        try:
            if not self._is_topic_there:  # a reader would wait for it
                metadata = read_metadata(self._there, [self._topic])
                if self._topic not in metadata.partitions:
                    code = metadata.errors.get(self._topic, UNKNOWN_TOPIC_OR_PARTITION)
                    needed = Needed(self._there, (Need.DESCRIBE_TOPIC.of(self._topic),))
                    return error_for(code, f"read {self._topic}", needed=needed)
                self._is_topic_there = True
            self._reader.catch_up(deadline_s, newest_only=newest_only)
        except KafkaError as error:
            return error
        return None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
