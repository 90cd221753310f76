"""Java's consumers, called by py4j: what each returns, and where it begins, by its settings."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError

from sparkmirror.domain.ids import TopicPartition
from tests.system.java_mm2 import JavaClasses

_POLL_MS: Final = 200
_POLLS_MAX: Final = 300
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


class Seen(NamedTuple):
    """`records` are offsets and values; `refusal` is the class of an exception."""

    records: Sequence[tuple[int, bytes | None]] = ()
    position: int = -1
    refusal: str = ""


def consumed(
    java: JavaClasses,
    servers: str,
    partition: TopicPartition,
    settings: Mapping[str, str],
    start: int | None = None,
) -> Seen:
    """All records from `start` to the end, or from where `auto.offset.reset` of a new group begins."""
    made = java.consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "sparkmirror-witness",
            "enable.auto.commit": "false",
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
            **settings,
        }
    )
    there = java.partition(partition)
    with closing(made) as consumer:
        consumer.assign([there])
        if start is not None:
            consumer.seek(there, start)
        try:
            return _read(java, consumer, there)
        except Py4JJavaError as error:
            return Seen(refusal=str(error.java_exception.getClass().getSimpleName()))


def _read(java: JavaClasses, consumer: Any, there: Any) -> Seen:
    """Positions pass control records, which are never returned."""
    found: list[tuple[int, bytes | None]] = []
    end = int(consumer.endOffsets([there]).get(there))
    for _ in range(_POLLS_MAX):
        polled = consumer.poll(java.milliseconds(_POLL_MS)).records(there)
        found += [(record.offset(), record.value()) for record in polled]
        if (position := int(consumer.position(there))) >= end:
            return Seen(found, position)
    raise AssertionError(f"{there}: at {position} of {end}")
