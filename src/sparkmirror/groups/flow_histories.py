"""Reads the offset syncs of a flow and of the way back, for a view of a mirror from outside."""

from collections.abc import Mapping
from contextlib import ExitStack, closing

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.groups.reverse_syncs import ReverseSyncs
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, unless_missing
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.settings.configured import ConfiguredCheckpoint
from sparkmirror.storage.offset_sync_topic import OffsetSyncsReader

_READ_TIMEOUT_S = 60.0


class FlowHistories:
    """Reads the histories of offset syncs. Each look continues where the one before ended."""

    def __init__(self, connector: ConfiguredCheckpoint) -> None:
        topic = connector.settings.offset_syncs_topic
        self._syncs = OffsetSyncsReader(connector.offset_syncs_consumer, topic, may_be_missing=True)
        self._reverse_syncs = ReverseSyncs(connector)

    def close(self) -> None:
        with ExitStack() as stack:
            for reader in (self._syncs, self._reverse_syncs):
                stack.enter_context(closing(reader))

    def read(self) -> Mapping[TopicPartition, SyncHistory]:
        """Return histories by the source's partitions; none before the flow has run. Raises KafkaError."""
        unless_missing(lambda: self._syncs.catch_up(_READ_TIMEOUT_S), None)
        trouble = self._reverse_syncs.catch_up(_READ_TIMEOUT_S)
        if trouble is not None and trouble.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise trouble
        return {**self._reverse_syncs.histories, **self._syncs.histories}
