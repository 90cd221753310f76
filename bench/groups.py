"""Groups as the translation of offsets meets them: what they commit, and the checkpoints that come of it."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from bench.errors import BenchError
from bench.partition_log import read
from bench.wire import Wire
from sparkmirror.offsets.wire_records import Checkpoint

_UNDER_WAY = 50
_TIMEOUT_S = 60.0
_COORDINATOR_NOT_YET = {14, 15, 16}

Offsets = Mapping[str, Mapping[int, int]]
"""By topic and partition."""


class Commits:
    """Lets groups without members commit, on a cluster of one broker: that is the coordinator of all."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._wire = Wire.connect(bootstrap)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.close()

    def prepare(self, group: str, topic: str) -> None:
        """Have the first coordinator there is: the broker creates its topic at the first look-up."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 2}
        consumer = Consumer(settings)
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        finally:
            consumer.close()

    def commit(self, groups: Mapping[str, Offsets]) -> None:
        left, deadline = dict(groups), time.monotonic() + _TIMEOUT_S
        while left := self._refused(left):
            if time.monotonic() > deadline:
                raise BenchError(f"{len(left)} groups could not commit within {_TIMEOUT_S:.0f} s")
            time.sleep(0.1)

    def _refused(self, groups: Mapping[str, Offsets]) -> dict[str, Offsets]:
        """Return the groups whose coordinator is still loading."""
        refused: dict[str, Offsets] = {}
        asked: list[str] = []
        for at, (group, offsets) in enumerate(groups.items()):
            self._wire.send_commit(group, offsets)
            asked.append(group)
            if at >= _UNDER_WAY:
                self._take(asked.pop(0), groups, refused)
        for group in asked:
            self._take(group, groups, refused)
        return refused

    def _take(self, group: str, groups: Mapping[str, Offsets], refused: dict[str, Offsets]) -> None:
        codes = self._wire.await_committed()
        if codes - _COORDINATOR_NOT_YET:
            raise BenchError(f"group {group} could not commit: errors {sorted(codes)}")
        if codes:
            refused[group] = groups[group]


class At(NamedTuple):
    """A checkpoint's content: an offset that was committed on the source, and its place on the target."""

    upstream: int
    downstream: int


Place = tuple[str, str, int]
"""Group, topic of the target, partition."""


def checkpoints_topic(source_alias: str) -> str:
    return f"{source_alias}.checkpoints.internal"


def last_checkpoints(bootstrap: str, source_alias: str, until_s: float) -> Mapping[Place, At]:
    """Return the last checkpoint of each place that was made until then, by the clock."""
    last: dict[Place, At] = {}
    for message in read(bootstrap, checkpoints_topic(source_alias), 0):
        if message.timestamp()[1] <= until_s * 1000:
            checkpoint = Checkpoint.decode(message.key() or b"", message.value() or b"")
            last[checkpoint.group, *checkpoint.topic_partition] = At(
                checkpoint.upstream_offset, checkpoint.downstream_offset
            )
    return last
