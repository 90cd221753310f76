"""The rules of the protocol. Each field is one of them; a mutant of the protocol changes one."""

from enum import Enum
from typing import Final, NamedTuple


class Fence(Enum):
    BEFORE_LOOKING = 0
    AFTER_LOOKING = 1
    NONE = 2


class Find(Enum):
    """The ways from the last record on the target to an offset of the source; mutants don't go by ends."""

    BY_ENDS = 0
    BY_COUNT = 1
    BY_CONTENT = 2


class Rules(NamedTuple):
    claims: bool = True
    """Attempts claim an epoch. Else each begins at the stored position, under a producer id of its own."""
    repeats: bool = False
    """Records may come twice: at least once is promised, and the order of each attempt."""
    fence: Fence = Fence.BEFORE_LOOKING
    find: Find = Find.BY_ENDS
    records_claims: bool = True
    """A claim is recorded before the records are read."""
    gives_way: bool = True
    """An attempt that finds a newer claim does not begin."""
    reads_again: bool = True
    """The records are read a second time when the marker is replicated."""
    awaits_marker: bool = True
    """The log is read only when the marker is below the high watermark."""
    proves_marker: bool = True
    """If the marker is gone, another attempt begins; if it took the place of records, these are lost."""
    writes_ahead: bool = True
    """Ends are recorded before the first batch that does not continue the one before."""
    records_epochs: bool = True
    """A recorded end has the source's leader epoch, which the first Fetch names."""
    records_acknowledged: bool = True
    """An attempt records with its ends how many of its records are acknowledged, and up to which offset."""
    stores_starts: bool = True
    """The start of an attempt, also after an incident, is stored before anything is sent."""
    attempts_decide: bool = True
    """The stored position counts only if it is of the newest attempt."""
    reads_position_late: bool = True
    """The position is read after the claim."""
    closes_in_order: bool = True
    """An attempt is closed only if nothing that it sent is unanswered."""
    checks_base_offsets: bool = True
    counts_offsets: bool = True
    """Records behind the position, and just before it, are counted batch by batch."""
    looks_on_new_leaders: bool = True
    """Whether another's entry stands in place of the last own one, where the target has a new leader."""
    waits_for_old_id: bool = True
    """A marker fences one producer id: attempts of another must have ended before the target is read."""


class Setting(NamedTuple):
    """The circumstances, which the protocol has to bear."""

    batch_max: int = 2
    window: int = 2
    epoch_max: int = 90
    """After so many epochs the partition gets another producer id."""


IMPLEMENTED: Final = Rules()
UNFENCED: Final = Rules(claims=False, repeats=True, looks_on_new_leaders=False)
"""The rules of mirrors without the right to claim."""

USUAL: Final = Setting()
