"""Reads what connectors keep in a topic that several of them share, each about things of its own."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.data.topic_log import read_topic

Owner = TypeVar("Owner")
Thing = TypeVar("Thing")
Value = TypeVar("Value")


def read_owned(
    settings: ConnectionSettings,
    topic: str,
    owner: Owner,
    parse: Callable[[LogRecord], tuple[Owner, Thing, Value | None] | None],
) -> dict[Thing, Value]:
    """Read the `newest_of` a whole topic. Blocks. Raises KafkaError, also if the topic doesn't exist."""
    return newest_of(read_topic(settings, topic), owner, parse)


def newest_of(
    records: Iterable[LogRecord],
    owner: Owner,
    parse: Callable[[LogRecord], tuple[Owner, Thing, Value | None] | None],
) -> dict[Thing, Value]:
    """The newest value of each thing of the owner, in the order in which they were written; None deletes one.

    `parse` gives owner, thing and value of a record, or None for a record of another kind.
    """
    found: dict[Thing, Value] = {}
    for parsed in map(parse, records):
        if parsed is None or parsed[0] != owner:
            continue
        _, thing, value = parsed
        found.pop(thing, None)
        if value is not None:
            found[thing] = value
    return found
