"""Tells all that the migrations topic of a flow holds, for those who look at it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import GroupId
from sparkmirror.storage.failbacks import Failbacks, parse_failback
from sparkmirror.storage.promotions import Promotions, parse_promotion
from sparkmirror.storage.remakes import Remake, parse_remake
from sparkmirror.storage.written_offsets import WrittenOffset, parse_written

T = TypeVar("T")


class Moved(NamedTuple):
    """The offsets that were written for a group and not restored; the last of them was written at `at_ms`."""

    at_ms: int
    offsets: tuple[WrittenOffset, ...]


class Begun(NamedTuple):
    """A topic that is being made anew, since `at_ms`."""

    at_ms: int
    remake: Remake


@dataclass(frozen=True, slots=True)
class Migrations:
    """Topics are named as on the source."""

    groups: Mapping[GroupId, Moved] = field(default_factory=dict)
    promotions: Promotions = field(default_factory=dict)
    failbacks: Failbacks = field(default_factory=dict)
    remakes: Mapping[str, Begun] = field(default_factory=dict)


def migrations_of(records: Collection[LogRecord], owner: str) -> Migrations:
    """Of the newest record of each key.

    Topics are those of one connector, whose `owner` is that of attempts; offsets of groups are those of every
    connector of the flow.
    """
    return Migrations(
        _groups(records),
        _owned(records, owner, parse_promotion),
        _owned(records, owner, parse_failback),
        _owned(records, owner, _parse_begun),
    )


def _parse_begun(record: LogRecord) -> tuple[str, str, Begun | None] | None:
    match parse_remake(record):
        case (owner, topic, Remake() as remake):
            return owner, topic, Begun(record.timestamp_ms or 0, remake)
        case _:
            return None


def _groups(records: Collection[LogRecord]) -> dict[GroupId, Moved]:
    found: dict[GroupId, Moved] = {}
    for record in records:
        match parse_written(record):
            case (group, _, WrittenOffset() as offset):
                at_ms, offsets = found.get(group, Moved(0, ()))
                found[group] = Moved(max(at_ms, record.timestamp_ms or 0), (*offsets, offset))
    return found


def _owned(
    records: Collection[LogRecord],
    owner: str,
    parse: Callable[[LogRecord], tuple[str, str, T | None] | None],
) -> dict[str, T]:
    return {
        topic: value
        for each in map(parse, records)
        if each is not None
        for of, topic, value in (each,)
        if of == owner and value is not None
    }
