"""Topics of one cluster: create, delete until they are gone, look at their ends.

The ends are asked for with `bench.wire`: a cheap request, and librdkafka's ListOffsets finds no leaders for a
topic that was created after others were deleted.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench.errors import BenchError
from bench.wire import Wire

_TIMEOUT_S = 60.0
_REPLICATION_FACTOR = 1
_CRITICAL = 2  # the brokers end before this client does; it need not say so


class Topics:
    """The admin side of one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _CRITICAL})
        self._wire = Wire.connect(bootstrap)

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        topic = NewTopic(name, partitions, _REPLICATION_FACTOR, config=dict(config or {}))
        for created in self._admin.create_topics([topic]).values():
            created.result(_TIMEOUT_S)
        self._wait(lambda: self._answers(name, partitions), f"topic {name} did not appear")

    def reset_config(self, name: str, keys: Iterable[str]) -> None:
        """Give these keys of a topic their defaults again."""
        entries = [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in keys]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        for altered in self._admin.incremental_alter_configs([resource]).values():
            altered.result(_TIMEOUT_S)

    def names(self) -> frozenset[str]:
        return frozenset(self._admin.list_topics(timeout=_TIMEOUT_S).topics)

    def delete_all_but(self, kept: Collection[str]) -> None:
        """Everything that is not the broker's own, and wait until it is gone."""
        doomed = sorted(name for name in self.names() if name not in kept and not name.startswith("__"))
        if not doomed:
            return
        for deleted in self._admin.delete_topics(doomed).values():
            deleted.result(_TIMEOUT_S)
        self._wait(lambda: self.names().isdisjoint(doomed), f"topics {doomed} were not deleted")

    def end_offsets(self, topic: str, partitions: int) -> int:
        """The sum of the partitions' end offsets, with one request."""
        return sum(self._wire.end_offsets(topic, partitions))

    def _answers(self, topic: str, partitions: int) -> bool:
        """Whether every partition has a leader that knows of it."""
        try:
            return self.end_offsets(topic, partitions) >= 0
        except BenchError:
            return False

    def _wait(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                raise BenchError(f"{complaint} within {_TIMEOUT_S:.0f} s")
            time.sleep(0.1)
