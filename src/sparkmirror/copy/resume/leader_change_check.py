"""Looks on each new leader of a target partition whether the last entry of the attempt is still there.

An unclean election may lose it, and the fence with it: then a task that should be fenced may write, and just
as many records as were lost would hide the loss from the next base offset.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.copy.partition_copy import PartitionCopy
from sparkmirror.copy.partition_events import Event, LastEntryLost
from sparkmirror.copy.partition_states import UNREACHABLE
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.incidents import target_overwritten
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.data.partition_reader import SpanReader

_log = logging.getLogger(__name__)

_BYTES_MAX = 1 << 20


class LastEntry(NamedTuple):
    """The last entry that the attempt is known to have in the target's log: a record, or its marker."""

    offset: int
    producer: ProducerId


def last_entry(copy: PartitionCopy) -> LastEntry | None:
    """The attempt's last entry, None where it has none yet: earlier attempts are closed, and don't wake."""
    if copy.producer is None or not copy.is_recorded or copy.last_entry is None:
        return None
    return LastEntry(copy.last_entry, copy.producer.producer)


class Missing(NamedTuple):
    """`is_replaced` says that another's entry has its place."""

    entry: LastEntry
    is_replaced: bool


class LeaderChangeCheck:
    """Checks new leaders: where the last entry is missing, another attempt must follow. Runs on the loop."""

    def __init__(self, target: ConnectionSettings, report: Callable[[TopicPartition, Event], None]) -> None:
        """`report` takes an event of a target partition."""
        self._target = target
        self._report = report

    async def check(self, copies: Mapping[TopicPartition, PartitionCopy]) -> None:
        """Look at these target partitions, which have new leaders."""
        entries = {at: entry for at, copy in copies.items() if (entry := last_entry(copy)) is not None}
        if not entries:
            return
        for partition, missing in (await self._missing(entries)).items():
            copy = copies[partition]
            if copy.producer is not None and copy.producer.producer == missing.entry.producer:
                overwritten = target_overwritten(partition, missing.entry.offset)
                self._report(partition, LastEntryLost(overwritten if missing.is_replaced else None))

    async def _missing(self, entries: Mapping[TopicPartition, LastEntry]) -> Mapping[TopicPartition, Missing]:
        """Tries again until the target can be read."""
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            try:
                return await loop.run_in_executor(None, lambda: dict(_look(self._target, entries)))
            except AuthorizationError:
                return {}  # the start has said so
            except SparkmirrorError as error:
                failures += 1
                _log.info("new leaders of %d partitions are not looked at yet: %s", len(entries), error)
                await asyncio.sleep(UNREACHABLE.delay_s(failures, random.random()))


def _look(
    target: ConnectionSettings, entries: Mapping[TopicPartition, LastEntry]
) -> Iterator[tuple[TopicPartition, Missing]]:
    """Yield the entries that are missing. Entries that have expired or were compacted pass. Blocks."""
    settings = ConsumerSettings(target)
    ends = list_offsets(settings, entries, LATEST)
    with closing(SpanReader(settings)) as reader:
        reader.expect({partition: entry.offset for partition, entry in entries.items()})
        starts = reader.starts(entries)
        for partition, entry in entries.items():
            end, start = ends[partition], starts[partition]
            if isinstance(end, SparkmirrorError):
                raise end
            if isinstance(start, SparkmirrorError):
                raise start
            if end <= entry.offset:
                yield partition, Missing(entry, is_replaced=False)
            elif start <= entry.offset:
                batches = reader.read(partition, entry.offset, entry.offset + 1, _BYTES_MAX)
                found = next((batch.header for batch in batches), None)
                if found is not None and not entry.producer.wrote(found):
                    yield partition, Missing(entry, is_replaced=True)
