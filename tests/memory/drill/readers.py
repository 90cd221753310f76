"""Consumer groups that have read a part of a run's records, and what `groups explain` says of them.

A group that continued at a translated offset would miss no record that it has not read; where the word is
"exactly", it would read none again, and where a number is told, no more than so many.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.explanation import Explanation, PartitionExplanation
from sparkmirror.domain.ids import GroupId
from sparkmirror.groups.group_explanation import Translation, explain
from sparkmirror.groups.group_facts import group_facts
from sparkmirror.settings.configured import ConfiguredFlow
from tests.memory.checked_flow import CheckedFlow
from tests.memory.committed import committed_records
from tests.memory.stage import Shape

_ON_THE_TARGET: Final = 0.3
_FOLLOWING: Final = (Translation.EXACT, Translation.APPROXIMATE)


@dataclass(frozen=True, slots=True)
class Readers:
    """A group without members. `committed` is by the source's partitions, `ends` where these ended then."""

    group: GroupId
    committed: dict[int, int]
    ends: dict[int, int]
    there: dict[int, int]
    """Offsets that the group has committed on the target."""


class GroupLooks:
    """One flow's groups: each look is about a new one."""

    def __init__(self, flow: CheckedFlow, settings: ConfiguredFlow, shape: Shape) -> None:
        self._flow = flow
        self._settings = settings
        self._shape = shape
        self._rng = random.Random(repr(shape))
        self._count = 0

    def drawn(self) -> Readers:
        """A group that has read up to anywhere in the logs of the source; some, on the target, too."""
        flow, rng = self._flow, self._rng
        logs = {at: flow.records.log(at) for at in flow.partitions}
        return self.committed(
            {at: rng.randint(log.start, log.high_watermark) for at, log in logs.items()},
            {
                at: rng.randint(0, flow.target_log(at).high_watermark)
                for at in flow.partitions
                if rng.random() < _ON_THE_TARGET
            },
        )

    def committed(self, source: dict[int, int], target: dict[int, int]) -> Readers:
        """A new group with these offsets."""
        self._count += 1
        ends = self._flow.ends
        group = GroupId(f"{ends.flow.source}-readers-{self._count}")
        for cluster, topic, offsets in (
            (ends.source, ends.topic, source),
            (ends.target, ends.remote, target),
        ):
            known = cluster.groups.group(group).offsets
            known.update({(topic, at): (offset, "") for at, offset in offsets.items()})
        now = {at: self._flow.records.log(at).high_watermark for at in source}
        return Readers(group, source, now, target)

    def explained(self, readers: Readers) -> Explanation:
        """Raises KafkaError."""
        return explain(group_facts(self._settings, readers.group))

    def wrong(self, readers: Readers, explained: Explanation) -> Iterator[str]:
        """Yield what is not true at any moment after `readers` were there."""
        if self._shape.is_lossy:
            return  # other records may have these offsets by now
        for it in explained.partitions:
            yield from (f"group at {it.source}: {what}" for what in self._wrong(readers, it))

    def unsettled(self, readers: Readers, explained: Explanation) -> Iterator[str]:
        """Yield what is not true either, or not told, once everything is copied."""
        yield from self.wrong(readers, explained)
        yield from (f"group: {obstacle}" for obstacle in explained.obstacles)
        told = {it.source.partition for it in explained.partitions}
        yield from (f"group: partition {at} is not told" for at in self._flow.partitions if at not in told)
        if self._shape.is_lossy:
            return
        for it in explained.partitions:
            if it.source.partition in readers.there and it.numbers["target_offset"] is None:
                yield f"group at {it.source}: its offset on the target is not told"
            has_copies = bool(self._flow.copied(it.source.partition))
            if has_copies and not it.is_fine:
                yield f"group at {it.source}: {it.details['translation']}: {it.why}"
            elif not has_copies and it.is_fine and not self._shape.preserves_offsets:
                yield f"group at {it.source}: {it.details['translation']}, and nothing is copied"

    def _wrong(self, readers: Readers, it: PartitionExplanation) -> Iterator[str]:
        at, numbers = it.source.partition, it.numbers
        committed = readers.committed[at]
        if numbers["source_offset"] != committed:
            yield f"is said to be at {numbers['source_offset']}, and is at {committed}"
        lag, now = numbers["source_lag"], self._flow.records.log(at).high_watermark
        if lag is not None and not readers.ends[at] <= committed + lag <= now:
            yield f"is said to have lag {lag}, at {committed} of {readers.ends[at]} to {now}"
        there, told = readers.there.get(at), numbers["target_offset"]
        if told not in (None, there):
            yield f"is said to be at {told} on the target, and is at {there}"
        if it.details["translation"] not in _FOLLOWING:
            return
        translated, again_max = numbers["translated_offset"], it.details["read_again_max"]
        assert translated is not None
        skipped, again = self._skipped_and_again(at, committed, translated)
        where = f"{committed} is said to be {translated} on the target"
        if skipped:
            yield f"{where}: {it.why}; records {skipped} are skipped"
        if isinstance(again_max, int) and again > again_max and self._shape.is_fenced:
            yield f"{where}: {it.why}; {again} records are read again"
        writes = numbers["next_sync_writes"]
        if writes is not None and writes != translated:
            yield f"{where}, and {writes} is written"
        if writes is not None and there is not None and writes <= there:
            yield f"{writes} is written, and {there} is there"

    def _skipped_and_again(self, partition: int, committed: int, translated: int) -> tuple[list[int], int]:
        """Records that the group has not read and that it would miss, and how many it would read again."""
        records, offsets = self._flow.records, self._flow.records.ledgers[partition].offsets
        last: dict[int, int] = {}
        with suppress(KeyError):  # no such topic: nothing is there
            for record in committed_records(self._flow.target_log(partition)):
                last[records.number_of(record.value)] = record.offset
        own = {number: offset for number, offset in last.items() if number >= 0}
        skipped = [it for it, offset in own.items() if offsets[it] >= committed and offset < translated]
        again = [it for it, offset in own.items() if offsets[it] < committed and offset >= translated]
        return skipped, len(again)
