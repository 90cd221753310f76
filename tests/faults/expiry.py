"""Lets retention pass what was copied last, while the mirror is dead.

What lies behind the stored positions is compared before it expires, so that nothing goes unseen.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import confluent_kafka as confluent

from sparkmirror.domain.ids import Alias, ConnectorName, TopicPartition
from sparkmirror.storage.positions import read_all_positions
from tests.faults.functions.orders import is_kept
from tests.faults.testbed import ALIAS, PINGS, TOPIC, DrillTestbed, remote
from tests.faults.verdict import verify
from tests.support.broker_data import move_log_starts
from tests.support.topic_reader import TopicReader

_POSITIONS: Final = f"mm2-offsets.{ALIAS}.internal"
_CONNECTOR: Final = ConnectorName("MirrorSourceConnector")

Content = tuple[bytes | None, bytes | None, tuple[int, int]]


class Tail(NamedTuple):
    """The records of a partition behind its stored position, by their offsets on both sides."""

    source: Sequence[int]
    target: Sequence[int]


def expire_unstored(testbed: DrillTestbed, rng: random.Random) -> None:
    """Remove some or all of what was copied behind the stored positions, from one side or both.

    At least one record stays on the target: without any, nothing says how far an attempt came.
    """
    verdict = verify(testbed, to_the_end=False)
    assert verdict.is_exact, str(verdict)
    at_source, at_target = rng.choice([(True, False), (False, True), (True, True)])
    tails = {partition: tail for partition, tail in _tails(testbed).items() if len(tail.target) > 1}
    if at_source:
        ends = {partition: rng.choice(tail.source) + 1 for partition, tail in tails.items()}
        move_log_starts(testbed.source.cluster, ends)
    if at_target:
        chosen = {partition: rng.randrange(1, len(tail.target)) for partition, tail in tails.items()}
        starts = {
            TopicPartition(remote(partition.topic), partition.partition): tails[partition].target[at]
            for partition, at in chosen.items()
        }
        move_log_starts(testbed.target.cluster, starts)
        testbed.pings.update(
            (partition.partition, (tails[partition].source[at], tails[partition].target[at]))
            for partition, at in chosen.items()
            if partition.topic == PINGS
        )
    # On each side a tail has at most this many offsets, control markers among them.
    testbed.expired += sum(2 * (tail.target[-1] + 1 - tail.target[0]) for tail in tails.values())


def _tails(testbed: DrillTestbed) -> Mapping[TopicPartition, Tail]:
    positions = read_all_positions(testbed.target.connection, _POSITIONS, _CONNECTOR, Alias(ALIAS))
    found = {}
    for topic in (TOPIC, PINGS):
        with (
            TopicReader(testbed.source.cluster.bootstrap_servers, topic) as source,
            TopicReader(testbed.target.cluster.bootstrap_servers, remote(topic)) as target,
        ):
            for partition, position in positions.items():
                if partition.topic != topic or position.producer is None:
                    continue
                copied = _from(target, partition.partition, position.producer.next_offset)
                upstream = _from(source, partition.partition, position.offset + 1)
                if testbed.transforms and topic == TOPIC:
                    upstream = [each for each in upstream if is_kept(each[1][1])]
                upstream = upstream[: len(copied)]
                is_same = [content for _, content in copied] == [content for _, content in upstream]
                assert is_same, f"{partition} differs behind {position}"
                found[partition] = Tail([offset for offset, _ in upstream], [offset for offset, _ in copied])
    return found


def _from(reader: TopicReader, number: int, first: int) -> list[tuple[int, Content]]:
    log_start, _ = reader.offsets(number)
    return list(_contents(reader.read(number, max(first, log_start))))


def _contents(messages: Iterator[confluent.Message]) -> Iterator[tuple[int, Content]]:
    for message in messages:
        offset = message.offset()
        assert offset is not None
        yield offset, (message.key(), message.value(), message.timestamp())
