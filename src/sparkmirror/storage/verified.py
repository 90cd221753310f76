"""Keeps what `sparkmirror verify` found as events of a flow, for every reader of its events.

An event has as many partitions as fit in one record, whole topics apart from that. What an event says of a
partition replaces what earlier ones said.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.events import Event, EventKind

_PARTITIONS_MAX: Final = 1000
"""The most partitions in an event: with names of 249 characters it has less than 300 KB."""


class Verified(NamedTuple):
    """A comparison of a partition, made at `at` in epoch seconds.

    Everything before `upto`, an offset of the source, was compared; None where not everything could be.
    """

    at: float
    upto: int | None
    differences: int


def verified_events(
    found: Mapping[TopicPartition, Verified], text: str, connector: str, node: str
) -> Iterator[Event]:
    """`text` says what was found of all. The comparisons were made at one time."""
    ordered = sorted(found.items())
    parts = [ordered[at : at + _PARTITIONS_MAX] for at in range(0, len(ordered), _PARTITIONS_MAX)]
    for number, part in enumerate(parts, start=1):
        of = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        at = part[0][1].at
        yield Event(at, EventKind.VERIFIED, connector, "", f"{text}{of}", node, _details(part))


def verified_of(event: Event) -> Mapping[TopicPartition, Verified]:
    """Return what an event tells of partitions; nothing for another kind or version."""
    if event.kind is not EventKind.VERIFIED or event.details is None:
        return {}
    try:
        return {
            TopicPartition(str(topic), int(partition)): Verified(
                event.time, None if upto is None else int(upto), int(differences)
            )
            for topic, partitions in event.details["topics"].items()
            for partition, upto, differences in partitions
        }
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def _details(part: Sequence[tuple[TopicPartition, Verified]]) -> Mapping[str, Any]:
    return {
        "topics": {
            topic: [(of.partition, it.upto, it.differences) for of, it in partitions]
            for topic, partitions in groupby(part, key=lambda each: each[0].topic)
        }
    }
