"""Waits until everything that is in a topic now is decided: committed or aborted (KIP-98)."""

import random

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for
from sparkmirror.kafka.metadata import read_metadata
from sparkmirror.kafka.offsets import LATEST, require_offsets
from sparkmirror.kafka.transport import network_of

_PAUSE = Backoff(first_s=0.005, max_s=0.2)
"""The markers of a transaction that ends are written within milliseconds."""


def await_stable(settings: ConnectionSettings, topic: str, *, deadline_s: float = 60.0) -> None:
    """Return when the last stable offsets have reached where the partitions end now.

    A transaction that is open hides what others committed behind its first record, as long as it is open.
    Raises KafkaError, RetriableError when it takes too long.
    """
    network = network_of(settings)
    deadline = network.time() + deadline_s
    metadata = read_metadata(settings, [topic])
    if topic not in metadata.partitions:
        code = metadata.errors.get(topic, UNKNOWN_TOPIC_OR_PARTITION)
        raise error_for(code, f"read {topic}", needed=Needed(settings, (Need.DESCRIBE_TOPIC.of(topic),)))
    partitions = [TopicPartition(topic, number) for number in range(metadata.partitions[topic])]
    ends = require_offsets(ConsumerSettings(settings), partitions, LATEST, metadata)
    looks = 0
    while True:
        stable = require_offsets(ConsumerSettings(settings, read_committed=True), list(ends), LATEST)
        ends = {partition: end for partition, end in ends.items() if stable[partition] < end}
        if not ends:
            return
        if network.time() > deadline:
            raise RetriableError(f"{', '.join(map(str, ends))}: a transaction is open since {deadline_s:g} s")
        looks += 1
        network.sleep(_PAUSE.delay_s(looks, random.random()))
