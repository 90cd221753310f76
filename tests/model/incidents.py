"""The kinds of incidents, what each explains, and which fault may be its cause."""

from typing import Final

from tests.model.state import Faults, Incident

SOURCE_TRUNCATED: Final = "source-truncated"
RECORDS_LOST: Final = "records-lost"
"""The source no longer has them."""
TARGET_LOST: Final = "target-lost"
UNCERTAIN: Final = "uncertain"
"""Whether these are on the target can't be known: they are written, perhaps again."""
DOUBLED: Final = "doubled"
"""A batch of a fenced attempt got in, because the leader had forgotten the producer."""
FOREIGN: Final = "foreign-writer"
RUNS_LOST: Final = "runs-lost"

EVERYTHING: Final = 99

_EXPLAIN_DOUBLES: Final = (UNCERTAIN, DOUBLED)
_EXPLAIN_MISSING: Final = (SOURCE_TRUNCATED, RECORDS_LOST, TARGET_LOST)
_CAUSES: Final[dict[str, tuple[str, ...]]] = {
    SOURCE_TRUNCATED: ("cut", "revive"),
    RECORDS_LOST: ("expire",),
    TARGET_LOST: ("truncate",),
    UNCERTAIN: ("retain", "truncate", "lose_runs"),
    DOUBLED: ("forget", "truncate"),
    FOREIGN: ("foreign",),
    RUNS_LOST: ("lose_runs",),
}


def explains_double(incidents: frozenset[Incident], offset: int) -> bool:
    return _covered(incidents, _EXPLAIN_DOUBLES, offset)


def has_changed_history(incidents: frozenset[Incident]) -> bool:
    return any(kind == SOURCE_TRUNCATED for kind, _, _ in incidents)


def explains_missing(incidents: frozenset[Incident], offset: int) -> bool:
    return _covered(incidents, _EXPLAIN_MISSING, offset)


def without_cause(incidents: frozenset[Incident], allowed: Faults, left: Faults) -> str | None:
    """An incident although nothing of its kind happened."""
    for kind, _, _ in sorted(incidents):
        if all(getattr(allowed, fault) == getattr(left, fault) for fault in _CAUSES[kind]):
            return kind
    return None


def _covered(incidents: frozenset[Incident], kinds: tuple[str, ...], offset: int) -> bool:
    return any(kind in kinds and first <= offset < end for kind, first, end in incidents)
