"""Decides from both logs of a partition how it resumes with preserved offsets. Pure."""

from collections.abc import Collection
from typing import NamedTuple

from sparkmirror.batches.producer import ProducerId
from sparkmirror.copy.partition_events import ResumeReason
from sparkmirror.copy.preserve.preserved_tail import Bounds, Tail, Writers
from sparkmirror.domain.ids import LogIdentity, is_another
from sparkmirror.domain.incidents import (
    Incident,
    batch_skipped,
    records_lost,
    target_recreated,
    target_truncated,
)
from sparkmirror.settings.copy_partition import CopyPartition


class Found(NamedTuple):
    """The findings in both logs of a partition, and the claimed epoch."""

    claimed: ProducerId
    source: Bounds
    target: Bounds
    logs: LogIdentity
    accepted: int = 0
    """The offset before which the target's log counts as written by this flow: see `Failback`."""
    keeps_all: bool = False
    deleted_ids: Collection[bytes] = ()
    """The ids of target topics that were deleted on purpose, and which this one replaces."""


class Known(NamedTuple):
    plan: CopyPartition
    reason: ResumeReason
    found: Found

    @property
    def may_begin_filled(self) -> bool:
        """Whether the log may begin with filler: it is not empty, and its source does not begin at 0."""
        return self.found.source.start > 0 and self.found.target.start < self.found.target.end


def mismatch(known: Known, tail: Tail) -> str | None:
    """Why the target's log can't get its source's offsets, as far as it tells; None if it can."""
    plan, reason, found = known
    source, target = found.source, found.target
    what: str | None = None
    if tail.foreign is not None:
        what = (
            f"another producer (producer id {tail.foreign.producer_id}) has written offset "
            f"{tail.foreign.base_offset}"
        )
    elif target.end > source.end:
        what = f"it ends at {target.end}, and its source at {source.end}, which was truncated or recreated"
    elif (
        reason.position is not None
        and target.end > max(target.start, found.accepted)
        and _is_new(reason, found)
    ):
        what = f"it holds records of another topic of the name {plan.source.topic}, deleted since"
    elif reason.diverged_at is not None and reason.diverged_at < target.end:
        what = f"the source has lost its records from offset {reason.diverged_at} on, and has others there"
    elif reason.position is None and not tail.is_own and target.end > max(source.start, found.accepted):
        what = f"it ends at {target.end} with nothing of this flow, and its source begins at {source.start}"
    elif reason.taken is not None and reason.taken < target.end:
        what = (
            f"the offset {reason.taken} of its next record is taken by a control marker, which its "
            "transaction coordinator has repeated"
        )
    return what


def writers(reason: ResumeReason, found: Found) -> Writers:
    """Java MM2, too, keeps offsets where none is missing: its position is then that of the last record."""
    position, own = reason.position, found.claimed
    if position is None or _is_recreated(reason, found):
        return Writers(own, {own.id}, found.accepted)
    if position.producer is None:
        is_java = position.offset + 1 == found.target.end
        return Writers(own, {own.id}, max(found.target.end if is_java else 0, found.accepted))
    run = position.run
    same_end = run.last_downstream + 1 if run is not None and run.shift == 0 else 0
    return Writers(own, {own.id, position.producer.producer.id}, max(same_end, found.accepted))


def logs_read(reason: ResumeReason, found: Found) -> LogIdentity:
    """The leader epoch counts only if it is that of the record before the target's end."""
    position = reason.position
    if position is None or _is_new(reason, found) or position.offset + 1 != found.target.end:
        return found.logs
    return found.logs._replace(source_epoch=position.logs.source_epoch)


def _is_new(reason: ResumeReason, found: Found) -> bool:
    assert reason.position is not None
    return is_another(reason.position.logs.source_id, found.logs.source_id)


def _is_recreated(reason: ResumeReason, found: Found) -> bool:
    """Whether the target topic is another than the one with the last position."""
    position = reason.position
    return position is not None and is_another(position.logs.target_id, found.logs.target_id)


def is_unasked(reason: ResumeReason, found: Found) -> bool:
    """Whether the topic was recreated other than by the commands that do so."""
    position = reason.position
    return (
        position is not None
        and _is_recreated(reason, found)
        and position.logs.target_id not in found.deleted_ids
    )


def is_unexplained(reason: ResumeReason, tail: Tail) -> bool:
    """Whether the log does not show yet why a sequence was refused: followers may not have it."""
    is_as_before = reason.position is not None and reason.position.producer == tail.state
    return reason.is_distrusted and is_as_before


def next_position(
    plan: CopyPartition, reason: ResumeReason, found: Found, tail: Tail
) -> tuple[int, Incident | None]:
    """The next upstream offset to copy: where the target ends, or before markers at its end.

    There may be one too many, which has the offset of the next record.
    """
    end, start = found.target.end, found.source.start
    skipped, position = reason.skipped, reason.position
    if skipped is not None and skipped.first <= end <= skipped.last:
        return skipped.last + 1, batch_skipped(skipped.first, skipped.last, skipped.error)
    if end < start:
        return start, records_lost(end, start)
    copied = 0 if tail.last_record is None else tail.last_record + 1
    if _is_recreated(reason, found):
        following = min(end, max(start, found.target.start, copied))
        return following, target_recreated(following) if is_unasked(reason, found) else None
    known = None if position is None else position.producer
    if known is not None and end < known.next_offset:
        return end, target_truncated(plan.target, end, known.next_offset, end)
    done = 0 if position is None else position.offset + 1
    return min(end, max(start, found.target.start, copied, done)), None
