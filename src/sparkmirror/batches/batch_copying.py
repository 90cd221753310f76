"""Turns the batches of a fetch response into the batches to produce, for one partition.

Decides per batch between the fast and the slow action and keeps the position; sends nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.aborted_transactions import AbortedTransactions
from sparkmirror.batches.cycles import CycleError, CycleFilter, UnknownWriterError
from sparkmirror.batches.record_batch import (
    CODEC_MASK,
    BatchAction,
    FetchedBatch,
    OutgoingBatch,
    choose_action,
    has_valid_crc,
    iterate_batches,
)
from sparkmirror.batches.records import naming_offset
from sparkmirror.batches.reencoding import Change, ChangeFailedError, Encoding, recompress, reopen
from sparkmirror.batches.tiny_batches import TinyBatches, part_response
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX
from sparkmirror.domain.errors import CorruptBatchError

_TINY_BYTES = 1024
"""A batch up to here costs more to produce by itself than to open and merge with its neighbours."""

MERGED_BYTES_MAX = 512 * 1024
"""Spreads the cost of a request and its columns over hundreds of records; half of what a target accepts."""

_CHANGED_RATIO = 2
"""A change opens so many times as much together, a whole response of Kafka's default size: see
`python -m bench.reencoding`."""


@dataclass(frozen=True, slots=True)
class CopyRules:
    """The target format of a partition's batches. `codec` is None to keep the source's.

    Neighbours in a response that are tiny or must be opened anyway are merged while together they have at
    most `merged_bytes_max` bytes, as fetched; 0 merges none. Where batches end then depends on the response.
    What is opened together may have at most `decompressed_bytes_max`.
    """

    target_stamps_append_time: bool = False
    batch_bytes_max: int = 1048588
    codec: int | None = None
    check_crcs: bool = True
    merged_bytes_max: int = 0
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    is_gapless: bool = False
    """Whether batches end where offsets are missing, since these are filled on the target."""

    def encoding(self, codec: int) -> Encoding:
        """The encoding of batches that have this codec at the source."""
        codec = codec if self.codec is None else self.codec
        return Encoding(codec, self.batch_bytes_max, self.decompressed_bytes_max, self.is_gapless)


class Step(NamedTuple):
    """`position` is the next offset to copy once these batches are acknowledged."""

    batches: list[OutgoingBatch]
    position: int


def copy_batches(
    response: memoryview,
    position: int,
    rules: CopyRules,
    aborted: AbortedTransactions | None,
    cycles: CycleFilter | None = None,
    change: Change | None = None,
) -> Iterator[Step]:
    """The steps of a response, in order; what is behind the position is left out.

    `aborted` is the response's list under read_committed, None under read_uncommitted; `cycles` says what
    comes back, None where nothing can; `change` is not with cycles that have one. Raises CorruptBatchError
    naming the offset, UnknownWriterError, CycleError and ChangeFailedError; what came before it has been
    yielded.
    """
    if cycles is not None:
        change = cycles.change or change
    merging = _Merging(rules, position, change)
    tiny_bytes = 0 if aborted or change is not None else merging.tiny_bytes
    for part, tiny in part_response(response, tiny_bytes):
        steps = None if tiny is None else _copy_together(tiny, merging.position, rules, cycles)
        if steps is None:
            judged = _judged(iterate_batches(part), merging.position, rules, aborted, cycles)
            yield from _copy_one_by_one(judged, merging, rules)
        else:
            yield from merging.steps()
            yield from steps
            merging.position = steps[-1].position if steps else merging.position
    yield from merging.steps()


def _copy_together(
    tiny: TinyBatches, position: int, rules: CopyRules, cycles: CycleFilter | None
) -> list[Step] | None:
    """The steps of all of them together; None if they must be handled one by one."""
    codec = tiny.codec if rules.codec is None else rules.codec
    if codec is None or not tiny.are_sound(check_crcs=rules.check_crcs):
        return None
    chosen = tiny.with_records_from(position)
    if cycles is not None:
        kept = cycles.keeps(tiny.headers[chosen])
        if kept is None:
            return None
        chosen = chosen[kept]
    steps: list[Step] = []
    end, copied_bytes = tiny.end_position(-1), 0
    try:
        for group in tiny.groups(chosen, rules.merged_bytes_max):
            batches = tiny.reopen(group, position, rules.encoding(codec))
            position = tiny.end_position(group[-1])
            steps.append(Step(batches, position))
            copied_bytes += sum(len(batch.data) for batch in batches)
            if copied_bytes > rules.decompressed_bytes_max:
                return None
    except CorruptBatchError:
        return None
    if end > position:
        last = steps.pop().batches if steps else []
        steps.append(Step(last, end))
    return steps


def _copy_one_by_one(judged: "Iterable[_Judged]", merging: "_Merging", rules: CopyRules) -> Iterator[Step]:
    try:
        for batch, action in judged:
            if merging.wants(batch, action):
                if not merging.has_room_for(batch):
                    yield from merging.steps()
                merging.add(batch, action)
            elif action is BatchAction.FAST:
                yield from merging.steps()
                merging.position = batch.header.last_offset + 1
                yield Step(_whole(batch, rules), merging.position)
            else:
                merging.position = batch.header.last_offset + 1
                if not merging:
                    yield Step([], merging.position)
    except (CorruptBatchError, UnknownWriterError, CycleError):
        yield from merging.steps()
        raise


def _judged(
    fetched: Iterable[FetchedBatch],
    position: int,
    rules: CopyRules,
    aborted: AbortedTransactions | None,
    cycles: CycleFilter | None,
) -> Iterator[tuple[FetchedBatch, BatchAction]]:
    """Yield each batch that isn't behind the position, with its action."""
    for batch in fetched:
        header = batch.header
        if rules.check_crcs and not has_valid_crc(batch):
            raise CorruptBatchError(f"offset {header.base_offset}: CRC mismatch")
        dropped = aborted is not None and aborted.drops(batch)
        action = choose_action(header, position, target_stamps_append_time=rules.target_stamps_append_time)
        if action is BatchAction.BEHIND:
            continue
        if dropped or (
            cycles is not None and action is not BatchAction.NOTHING_LEFT and cycles.drops(header)
        ):
            action = BatchAction.NOTHING_LEFT
        yield batch, action
        position = header.last_offset + 1


_Judged = tuple[FetchedBatch, BatchAction]


class _Merging:
    """Neighbours that wait to become one batch. `position` is the next offset behind all that was seen."""

    def __init__(self, rules: CopyRules, position: int, change: Change | None) -> None:
        self.position = position
        self._change = change
        self._rules = rules
        self.tiny_bytes = min(_TINY_BYTES, rules.merged_bytes_max)
        self._bytes_max = rules.merged_bytes_max * (1 if change is None else _CHANGED_RATIO)
        self._from = position
        self._bytes = 0
        self._batches: list[_Judged] = []

    def __bool__(self) -> bool:
        return bool(self._batches)

    def wants(self, batch: FetchedBatch, action: BatchAction) -> bool:
        return self._merges(batch, action) or (
            action is BatchAction.FAST and self._change is not None and self._is_concerned(batch)
        )

    def _merges(self, batch: FetchedBatch, action: BatchAction) -> bool:
        return action is BatchAction.REWRITE or (
            action is BatchAction.FAST and len(batch.data) <= self.tiny_bytes
        )

    def _is_concerned(self, batch: FetchedBatch) -> bool:
        assert self._change is not None
        with naming_offset(batch.header.base_offset):
            return self._change.concerns(batch, self._rules.decompressed_bytes_max)

    def has_room_for(self, batch: FetchedBatch) -> bool:
        return not self._batches or (
            self._bytes + len(batch.data) <= self._bytes_max
            and _encoding(batch, self._rules) == _encoding(self._batches[0][0], self._rules)
        )

    def add(self, batch: FetchedBatch, action: BatchAction) -> None:
        if not self._batches:
            self._from = self.position
        self._batches.append((batch, action))
        self._bytes += len(batch.data)
        self.position = batch.header.last_offset + 1

    def steps(self) -> Iterator[Step]:
        """Take out what waited."""
        waited, self._batches, self._bytes = self._batches, [], 0
        if not waited:
            return
        if self._change is None:
            yield from self._as_they_are(waited, self._from, self.position)
        else:
            yield from self._changed(self._change, waited, self._from, self.position)

    def _changed(self, change: Change, waited: Sequence[_Judged], begin: int, end: int) -> Iterator[Step]:
        batches = [batch for batch, _ in waited]
        try:
            with naming_offset(batches[0].header.base_offset):
                changed = change.apply(batches, begin, _encoding(batches[0], self._rules))
        except CorruptBatchError:
            if len(waited) == 1:
                raise
            # Handled one by one, those before the corrupt one can be copied, and its offset be named.
            for one, first, behind in _one_by_one(waited, begin, end):
                yield from self._changed(change, [one], first, behind)
        except ChangeFailedError as error:
            yield Step(error.before, error.offset)
            raise
        else:
            if changed is None:
                yield from self._as_they_are(waited, begin, end)
            else:
                yield Step(changed, end)

    def _as_they_are(self, waited: Sequence[_Judged], begin: int, end: int) -> Iterator[Step]:
        is_one = len(waited) > 1 and all(self._merges(*each) for each in waited)
        merged = self._merged([batch for batch, _ in waited], begin) if is_one else None
        if merged is not None:
            yield Step(merged, end)
            return
        for (batch, action), first, behind in _one_by_one(waited, begin, end):
            is_whole = action is BatchAction.FAST
            copied = _whole(batch, self._rules) if is_whole else _opened(batch, first, self._rules)
            yield Step(copied, behind)

    def _merged(self, batches: Sequence[FetchedBatch], begin: int) -> list[OutgoingBatch] | None:
        """Merge these into one batch or more; None if one is corrupt."""
        try:
            return reopen(batches, begin, _encoding(batches[0], self._rules))
        except CorruptBatchError:
            return None


def _one_by_one(waited: Sequence[_Judged], begin: int, end: int) -> Iterator[tuple[_Judged, int, int]]:
    """Yield each with the position before it and the one behind it."""
    for number, one in enumerate(waited, start=1):
        behind = end if number == len(waited) else one[0].header.last_offset + 1
        yield one, begin, behind
        begin = behind


def _encoding(batch: FetchedBatch, rules: CopyRules) -> Encoding:
    return rules.encoding(batch.header.attributes & CODEC_MASK)


def _whole(batch: FetchedBatch, rules: CopyRules) -> list[OutgoingBatch]:
    """A batch whose records are all copied as they are."""
    header = batch.header
    if rules.codec is None or rules.codec == header.attributes & CODEC_MASK:
        offsets = range(header.base_offset, header.last_offset + 1)
        return [OutgoingBatch(batch.data, offsets, header.max_timestamp)]
    with naming_offset(header.base_offset):
        recompressed = recompress(batch, _encoding(batch, rules))
    if len(recompressed.data) <= rules.batch_bytes_max or header.record_count == 1:
        return [recompressed]
    return _opened(batch, header.base_offset, rules)


def _opened(batch: FetchedBatch, position: int, rules: CopyRules) -> list[OutgoingBatch]:
    with naming_offset(batch.header.base_offset):
        return reopen([batch], position, _encoding(batch, rules))
