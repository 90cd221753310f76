"""Reads what connectors keep in a topic that several of them share, each about things of its own."""

from collections.abc import Callable
from typing import TypeVar

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.topic_log import read_topic

Owner = TypeVar("Owner")
Thing = TypeVar("Thing")
Value = TypeVar("Value")


def read_owned(
    settings: ConnectionSettings,
    topic: str,
    owner: Owner,
    parse: Callable[[LogRecord], tuple[Owner, Thing, Value | None] | None],
) -> dict[Thing, Value]:
    """The newest value of each thing of the owner, in the order in which they were written; None deletes one.

    `parse` gives owner, thing and value of a record, or None for a record of another kind. Blocks. Raises
    KafkaError, also where the topic doesn't exist.
    """
    found: dict[Thing, Value] = {}
    for parsed in map(parse, read_topic(settings, topic)):
        if parsed is None or parsed[0] != owner:
            continue
        _, thing, value = parsed
        found.pop(thing, None)
        if value is not None:
            found[thing] = value
    return found
