"""Mutants of the protocol: one rule of it is missing or wrong in each, and the model must notice."""

from typing import Final

from tests.model.rules import Fence, Find, Rules

MUTANTS: Final[dict[str, Rules]] = {
    "no fence": Rules(fence=Fence.NONE, proves_marker=False),
    "fence after reading back": Rules(fence=Fence.AFTER_READING),
    "no write-ahead": Rules(writes_ahead=False),
    "starts not stored": Rules(stores_starts=False),
    "counting": Rules(find=Find.BY_COUNT),
    "matching by content": Rules(find=Find.BY_CONTENT),
    "claiming the newest leader epoch": Rules(claims_copied_epoch=False),
    "claiming the last record's epoch behind a gap": Rules(claims_read_epoch=False),
    "one answer of a divergence taken for all": Rules(keeps_lineage=False),
    "positions of an older epoch": Rules(own_positions_only=False),
    "positions taken for exact": Rules(exact_positions_only=False),
    "positions not proven": Rules(proves_position=False),
    "markers not proven": Rules(proves_marker=False),
    "base offsets not checked": Rules(checks_base_offsets=False),
    "new leaders not checked": Rules(checks_new_leader=False),
    "old records sent again unseen": Rules(waits_if_old=False),
    "old producer id not waited for": Rules(waits_for_old_id=False),
}
