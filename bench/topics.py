"""Topics of one cluster: create, delete until they are gone, look at their ends.

The ends are asked for with `bench.wire`: a cheap request, and librdkafka's ListOffsets finds no leaders for a
topic that was created after others were deleted.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

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
_TOPIC_TIMEOUT_S = 0.04
"""More for each topic: a broker makes and deletes the logs of their partitions one after the other."""

_POLL_S = 0.2
_IN_A_REQUEST = 500
"""Fewer than a controller refuses."""

_Item = TypeVar("_Item")


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
        self._wait(lambda: self._takes_records(name, partitions), f"topic {name} did not appear")

    def create_many(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Topics of one partition, with these configs; return when all take records."""
        topics = [
            NewTopic(name, 1, _REPLICATION_FACTOR, config=dict(config)) for name, config in configs.items()
        ]
        for some in _portions(topics):
            for created in self._admin.create_topics(some).values():
                created.result(_TIMEOUT_S)
        missing = deque(configs)
        self._wait(lambda: self.all_take_records(missing), "topics did not appear", len(configs))

    def configs(self, topics: Sequence[str], key: str) -> Mapping[str, str | None]:
        """Return the value that each topic has on the cluster."""
        found: dict[str, str | None] = {}
        for some in _portions(topics):
            resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in some]
            for resource, described in self._admin.describe_configs(resources).items():
                found[resource.name] = described.result(_TIMEOUT_S)[key].value
        return found

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
        for some in _portions(doomed):
            for deleted in self._admin.delete_topics(some).values():
                deleted.result(_TIMEOUT_S)
        complaint = f"topics {doomed[:9]} … were not deleted"
        self._wait(lambda: self.names().isdisjoint(doomed), complaint, len(doomed))

    def end_offsets(self, topic: str, partitions: int) -> int:
        """The sum of the partitions' end offsets, with one request."""
        return sum(self._wire.end_offsets(topic, partitions))

    def all_take_records(self, missing: deque[str]) -> bool:
        """Ask for topics of one partition, in order; drop from `missing` what is there now.

        A broker lists what its controller knows of; records can go there once it has made the log.
        """
        while missing and self._takes_records(missing[0], 1):
            missing.popleft()
        return not missing

    def _takes_records(self, topic: str, partitions: int) -> bool:
        """Whether every partition has a leader that knows of it."""
        try:
            return self.end_offsets(topic, partitions) >= 0
        except BenchError:
            return False

    def _wait(self, condition: Callable[[], bool], complaint: str, topics: int = 1) -> None:
        timeout_s = _TIMEOUT_S + topics * _TOPIC_TIMEOUT_S
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise BenchError(f"{complaint} within {timeout_s:.0f} s")
            time.sleep(_POLL_S)


def _portions(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    for at in range(0, len(items), _IN_A_REQUEST):
        yield list(items[at : at + _IN_A_REQUEST])
