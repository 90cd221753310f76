"""Keeps one cluster's leaders and topic ids up to date in the background."""

import asyncio
import random
from collections.abc import Callable, Collection

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition, is_another
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.net.metadata import Broker, Leader, Metadata
from sparkmirror.kafka.wire.primitives import NO_TOPIC_ID


class ClusterView:
    """Holds the latest metadata. `refresh` may be called at any time: requests are merged and spaced out."""

    def __init__(
        self,
        settings: ConnectionSettings,
        loop: asyncio.AbstractEventLoop,
        on_change: Callable[[], None],
        on_failure: Callable[[SparkmirrorError], None],
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._on_change = on_change
        self._on_failure = on_failure
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)
        self._topics: Collection[str] = ()
        self._metadata = Metadata()
        self._requested_at = 0.0
        self._failures = 0
        self._refreshing = False
        self._stopped = False
        self._aging: asyncio.TimerHandle | None = None

    def start(self, topics: Collection[str]) -> None:
        self._topics = topics
        self._request()

    def stop(self) -> None:
        self._stopped = True
        if self._aging is not None:
            self._aging.cancel()

    @property
    def is_known(self) -> bool:
        """Whether the cluster has sent any metadata yet."""
        return bool(self._metadata.brokers)

    def leader(self, partition: TopicPartition) -> Leader | None:
        return self._metadata.leaders.get(partition)

    def broker(self, node_id: int) -> Broker | None:
        return self._metadata.brokers.get(node_id)

    def topic_id(self, topic: str) -> bytes:
        """NO_TOPIC_ID if brokers send none, or the topic does not exist."""
        return self._metadata.topic_ids.get(topic, NO_TOPIC_ID)

    def is_recreated(self, topic: str, topic_id: bytes, known_at: float) -> bool | None:
        """Whether the topic is another than the one that had this id at that time, by the loop's clock.

        None if the metadata here is older than that: it is requested again, and `on_change` follows.
        """
        if not is_another(topic_id, self.topic_id(topic)):
            return False
        if self._requested_at < known_at:
            self.refresh()
            return None
        return True

    @property
    def has_topic_ids(self) -> bool:
        """Whether every topic that exists has one."""
        ids = self._metadata.topic_ids
        return bool(ids) and ids.keys() >= self._metadata.partitions.keys()

    def topic_error(self, topic: str) -> int:
        """Kafka's error code for a topic without leaders in the last response, 0 for others."""
        return self._metadata.errors.get(topic, 0)

    def refresh(self) -> None:
        """Request metadata again: a broker is not the leader, or something is missing."""
        if self._refreshing or self._stopped:
            return
        self._refreshing = True
        self._failures += 1
        self._loop.call_later(self._backoff.delay_s(self._failures, random.random()), self._request)

    def _request(self) -> None:
        self._refreshing = True
        if not self._stopped:
            self._loop.create_task(self._read())

    async def _read(self) -> None:
        if self._aging is not None:
            self._aging.cancel()
        requested_at = self._loop.time()
        try:
            metadata = await self._loop.run_in_executor(None, read_metadata, self._settings, self._topics)
        except SparkmirrorError as error:
            self._refreshing = False
            if isinstance(error, DisconnectedError):
                error = DisconnectedError(f"{self._settings.cluster}: {error}", error.code)
            self._on_failure(error)
            self.refresh()
            return
        self._refreshing = False
        self._aging = self._loop.call_later(self._settings.metadata_max_age_s, self.refresh)
        if metadata.leaders != self._metadata.leaders or metadata.brokers != self._metadata.brokers:
            self._failures = 0
        self._metadata, self._requested_at = metadata, requested_at
        if not self._stopped:
            self._on_change()
