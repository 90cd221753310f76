"""The kinds of incidents, what each explains, and which fault may be its cause."""

from typing import Final

from tests.model.state import Faults, Incident

SOURCE_TRUNCATED: Final = "source-truncated"
RECORDS_LOST: Final = "records-lost"
"""The source no longer has them."""
TARGET_LOST: Final = "target-truncated"
"""Reported also if a leader that forgot the marker acknowledged records of a fenced attempt."""
DOUBLED: Final = "doubled"
"""A batch of a fenced attempt got in, because the leader had forgotten the producer, or the marker."""

UNCERTAIN: Final = "not-read-back"
"""Whether records are on the target can't be known, since its log has expired there: they may come twice."""
NOT_DUE: Final = "not due"
"""Not an incident: what had expired when the first attempt began."""

EVERYTHING: Final = 99

_EXPLAIN_DOUBLES: Final = (DOUBLED, UNCERTAIN)
_EXPLAIN_MISSING: Final = (RECORDS_LOST, TARGET_LOST, NOT_DUE)
_CAUSES: Final[dict[str, tuple[str, ...]]] = {
    SOURCE_TRUNCATED: ("cut",),
    RECORDS_LOST: ("expire",),
    TARGET_LOST: ("truncate", "forget"),
    DOUBLED: ("forget", "truncate"),
    UNCERTAIN: ("retain",),
    NOT_DUE: ("expire",),
}


def explains_double(incidents: frozenset[Incident], offset: int) -> bool:
    return any(kind in _EXPLAIN_DOUBLES and first <= offset < end for kind, first, end in incidents)


def explains_missing(incidents: frozenset[Incident], offset: int) -> bool:
    return any(kind in _EXPLAIN_MISSING and first <= offset < end for kind, first, end in incidents)


def explains_change(incidents: frozenset[Incident], offset: int) -> bool:
    """Whether it is told that the source has lost the record with this offset."""
    return any(kind == SOURCE_TRUNCATED and first <= offset < end for kind, first, end in incidents)


def without_cause(incidents: frozenset[Incident], allowed: Faults, left: Faults) -> str | None:
    """An incident although nothing of its kind happened."""
    for kind, _, _ in sorted(incidents):
        if all(getattr(allowed, fault) == getattr(left, fault) for fault in _CAUSES[kind]):
            return kind
    return None
