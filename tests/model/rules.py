"""The rules of the protocol. Each field is one of them; a mutant of the protocol changes one."""

from enum import Enum
from typing import Final, NamedTuple


class Fence(Enum):
    BEFORE_READING = 0
    AFTER_READING = 1
    NONE = 2


class Find(Enum):
    """How the last record on the target becomes an offset of the source."""

    BY_RUNS = 0
    BY_COUNT = 1
    BY_CONTENT = 2


class Rules(NamedTuple):
    fence: Fence = Fence.BEFORE_READING
    find: Find = Find.BY_RUNS
    writes_ahead: bool = True
    """A run is stored before its first batch is sent."""
    claims_copied_epoch: bool = True
    """The first Fetch claims the leader epoch of the last copied record, not the newest."""
    claims_read_epoch: bool = True
    """Behind offsets without records a Fetch claims the leader epoch read there, not the last record's."""
    keeps_lineage: bool = True
    """Runs know the leader epochs before them, so a divergence is followed down to what agrees."""
    heeds_newer_starts: bool = True
    """What a newer start left out, because the source was truncated, does not count as copied."""
    own_positions_only: bool = True
    """The position of any but the newest attempt is ignored, and none is exact whose offset has expired."""
    exact_positions_only: bool = True
    """A position is exact only while the target still has all offsets from its target offset on."""
    proves_position: bool = True
    """A position is believed only if the record before its target offset is the one it names."""
    proves_marker: bool = True
    """If the marker that a run names is gone or under another leader epoch, records are lost."""
    stores_starts: bool = True
    """Where an attempt starts, or goes on after an incident, is stored at once, not with the first batch."""
    checks_base_offsets: bool = True
    checks_new_leader: bool = True
    """With a new leader, nothing is sent before the last acknowledged batch has been seen on the target."""
    waits_if_old: bool = True
    """Old records: one batch in flight, and an unclear outcome is read back under a new epoch."""
    waits_for_old_id: bool = True
    """A marker fences one producer id: attempts of another must have ended before the target is read."""


class Setting(NamedTuple):
    """The circumstances, which the protocol has to bear."""

    batch_max: int = 2
    window: int = 2
    epoch_max: int = 90
    raises_epoch: bool = False
    """transaction.version 2: the end of a transaction raises the epoch."""
    is_shared: bool = False
    """Other tasks use the same transactional id."""
    is_old: bool = False
    """Records are older than producer.id.expiration.ms: the leader may forget the producer at any time."""


DESIGNED: Final = Rules()
USUAL: Final = Setting()
