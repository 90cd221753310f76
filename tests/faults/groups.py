"""Consumer groups of the source under faults: on the target none may be ahead of its first unread record."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import confluent_kafka as confluent

from tests.faults.testbed import PARTITIONS, TOPIC, DrillTestbed, remote
from tests.support.broker_data import admin, end_offsets
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

_WAIT_S: Final = 120.0
_BEHIND: Final = 20
"""A group commits so many offsets before the end, as if it were about to read on."""

Offsets = Mapping[int, int]
"""By partition."""


class Place(NamedTuple):
    """The offsets of a record on both sides."""

    source: int
    target: int


class Groups:
    """Groups that commit once, each at another place, and never again."""

    def __init__(self, testbed: DrillTestbed) -> None:
        self._testbed = testbed
        self._committed: dict[str, Offsets] = {}
        self.read_again = 0
        """The number of records that groups read again on the target, counted by `problems`."""

    def __len__(self) -> int:
        return len(self._committed)

    def commit(self) -> None:
        """Let one more group commit, near the end of each partition."""
        name = f"faults.group.{len(self)}"
        ends = end_offsets(self._testbed.source.cluster, [TOPIC])
        offsets = {at.partition: max(0, end - _BEHIND) for at, end in ends.items()}
        chosen = [confluent.TopicPartition(TOPIC, at, offset) for at, offset in offsets.items()]
        wanted = confluent.ConsumerGroupTopicPartitions(name, chosen)
        client = admin(self._testbed.source.cluster)

        def is_done() -> bool:
            try:
                client.alter_consumer_group_offsets([wanted])[name].result(_WAIT_S)
            except confluent.KafkaException:  # its coordinator is being elected
                return False
            return True

        await_value(is_done, _WAIT_S, lambda: f"{name} can't commit")
        self._committed[name] = offsets

    def await_newest(self) -> None:
        """Wait until the group that committed last has its offsets on the target."""
        name = list(self._committed)[-1]
        self._testbed.await_while_running(
            lambda: len(self._translated(name)) == PARTITIONS, lambda: f"{name}: {self._translated(name)}"
        )

    def problems(self) -> list[str]:
        """Say which are ahead of the first record that they have not read and that was copied."""
        places = [list(self._places(partition)) for partition in range(PARTITIONS)]
        problems: list[str] = []
        self.read_again = 0
        for name, committed in self._committed.items():
            for partition, offset in self._translated(name).items():
                unread = next(
                    (each for each in places[partition] if each.source >= committed[partition]), None
                )
                if unread is None:
                    continue
                if offset > unread.target:
                    problems.append(
                        f"{name} is at {offset} in {TOPIC}-{partition} of the target, and has read up to "
                        f"{committed[partition]}: the next record is at {unread.target}"
                    )
                self.read_again += sum(offset <= each.target < unread.target for each in places[partition])
        return problems

    def _translated(self, name: str) -> Offsets:
        client = admin(self._testbed.target.cluster)
        asked = [confluent.ConsumerGroupTopicPartitions(name)]
        found: Sequence[confluent.TopicPartition] = (
            client.list_consumer_group_offsets(asked)[name].result(_WAIT_S).topic_partitions
        )
        return {each.partition: each.offset for each in found if each.topic == remote(TOPIC)}

    def _places(self, partition: int) -> Iterator[Place]:
        """The records that both sides have, in order."""
        source, target = self._testbed.sides
        on_target = dict(self._records(target.cluster.bootstrap_servers, remote(TOPIC), partition))
        for identity, offset in self._records(source.cluster.bootstrap_servers, TOPIC, partition):
            if identity in on_target:
                yield Place(offset, on_target[identity])

    def _records(self, servers: str, topic: str, partition: int) -> Iterator[tuple[object, int]]:
        """Yield what tells each record from the others, and its offset."""
        with TopicReader(servers, topic) as reader:
            for record in reader.read(partition):
                offset = record.offset()
                assert offset is not None
                yield (offset if self._testbed.preserves else record.value()), offset
