"""From the batches of a fetch response to the batches to produce, for one partition.

Decides per batch between the fast and the slow road and keeps the position; sends nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.domain.aborted_transactions import AbortedTransactions
from sparkmirror.domain.errors import CorruptBatchError
from sparkmirror.domain.record_batch import (
    CODEC_MASK,
    FetchedBatch,
    OutgoingBatch,
    Road,
    choose_road,
    has_valid_crc,
)
from sparkmirror.domain.records import read_records, rewrite


@dataclass(frozen=True, slots=True)
class CopyRules:
    """What a partition's batches must become. `codec` is None to keep the source's."""

    target_stamps_append_time: bool = False
    batch_bytes_max: int = 1048588
    codec: int | None = None
    check_crcs: bool = True


class Step(NamedTuple):
    """`position` is the next offset to copy once these batches are acknowledged."""

    batches: list[OutgoingBatch]
    position: int


def copy_batches(
    fetched: Iterable[FetchedBatch], position: int, rules: CopyRules, aborted: AbortedTransactions | None
) -> Iterator[Step]:
    """One step per batch of the response, in order, except those behind the position.

    `aborted` is the response's list under read_committed, None under read_uncommitted.
    Raises CorruptBatchError naming the offset; what came before it has been yielded.
    """
    for batch in fetched:
        if rules.check_crcs and not has_valid_crc(batch):
            raise CorruptBatchError(f"offset {batch.header.base_offset}: CRC mismatch")
        dropped = aborted is not None and aborted.drops(batch)
        road = choose_road(batch.header, position, target_stamps_append_time=rules.target_stamps_append_time)
        if road is Road.BEHIND:
            continue
        next_position = batch.header.last_offset + 1
        if dropped or road is Road.NOTHING_LEFT:
            yield Step([], next_position)
        elif road is Road.FAST and not _recodes(batch, rules):
            yield Step([_as_is(batch)], next_position)
        else:
            yield Step(_rewritten(batch, position, rules), next_position)
        position = next_position


def _recodes(batch: FetchedBatch, rules: CopyRules) -> bool:
    return rules.codec is not None and rules.codec != batch.header.attributes & CODEC_MASK


def _as_is(batch: FetchedBatch) -> OutgoingBatch:
    header = batch.header
    return OutgoingBatch(batch.data, range(header.base_offset, header.last_offset + 1), header.max_timestamp)


def _rewritten(batch: FetchedBatch, position: int, rules: CopyRules) -> list[OutgoingBatch]:
    try:
        records = [record for record in read_records(batch) if record.offset >= position]
    except CorruptBatchError as error:
        raise CorruptBatchError(f"offset {batch.header.base_offset}: {error}") from error
    codec = batch.header.attributes & CODEC_MASK if rules.codec is None else rules.codec
    return rewrite(records, codec, rules.batch_bytes_max)
