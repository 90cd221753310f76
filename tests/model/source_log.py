"""The source partition: what happens to it, and how its broker answers a Fetch."""

from collections.abc import Iterator

from tests.model.state import RADIX, Source


def appended(source: Source) -> Source:
    return source._replace(log=(*source.log, source.epoch))


def control_appended(source: Source) -> Source:
    """Control batches, aborted and skipped records: offsets that are not copied."""
    return source._replace(log=(*source.log, gone(source.epoch)))


def compacted(source: Source, offset: int) -> Source:
    log = source.log
    return source._replace(log=(*log[:offset], gone(log[offset]), *log[offset + 1 :]))


def expired(source: Source, start: int) -> Source:
    return source._replace(start=start)


def elected(source: Source) -> Source:
    return source._replace(epoch=source.epoch + 1)


def cut(source: Source, end: int) -> Source:
    """An unclean election: the new leader's log ends at `end`."""
    return source._replace(log=source.log[:end], epoch=source.epoch + 1)


def gone(epoch: int) -> int:
    """The entry of an offset without a record; also the leader epoch of such an entry."""
    return -2 - epoch


def is_record(entry: int) -> bool:
    return entry >= 0


def epoch_at(source: Source, offset: int) -> int:
    entry = source.log[offset]
    return entry if entry >= 0 else gone(entry)


def end_of_epoch(source: Source, epoch: int) -> tuple[int, int]:
    """Return the newest leader epoch up to `epoch` and its end offset, as OffsetsForLeaderEpoch does."""
    if epoch >= source.epoch:
        return source.epoch, len(source.log)
    found = -1
    for offset in range(source.start, len(source.log)):
        at = epoch_at(source, offset)
        if at > epoch:
            return (found, offset) if found >= 0 else (epoch, source.start)
        found = at
    return (found, len(source.log)) if found >= 0 else (epoch, source.start)


def divergence(source: Source, offset: int, claim: int) -> tuple[int, int] | None:
    """Return the answer to a Fetch that claims a leader epoch which the log before `offset` lacks."""
    if claim < 0:
        return None
    epoch, end = end_of_epoch(source, claim)
    return (epoch, end) if epoch < claim or end < offset else None


def offsets(source: Source) -> Iterator[int]:
    """Return the offsets of records that have neither expired nor been compacted away."""
    return (offset for offset in range(source.start, len(source.log)) if is_record(source.log[offset]))


def records(source: Source) -> Iterator[int]:
    """All records of the present log, also those that have expired."""
    for offset, entry in enumerate(source.log):
        if entry >= 0:
            yield entry * RADIX + offset
