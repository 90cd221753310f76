"""Decides which topics of the target are deleted because their source was deleted.

A topic that a cluster no longer lists may have been deleted, or hidden by a lost right, or a wrong cluster
may have responded. So a topic is deleted only if the source does not know its name for the whole grace period
and stored positions show that this mirror wrote that very topic of the target. No topic is deleted while most
mirrored topics seem to be gone, and never one whose name does not show that it is a copy: applications of the
target may write there too.

Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from sparkmirror.domain.topics import ListedTopic


class Missed(NamedTuple):
    """Epoch seconds: when the topic was missing at first, and when it was last."""

    since: float
    seen_missing: float


class Absence(Enum):
    """The source's response to a request for a topic by name that it does not list."""

    UNKNOWN = "unknown"
    HIDDEN = "hidden"
    """The topic may not be described, so whether it exists is unknown."""
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Copied:
    """A topic with stored positions. `target_id` is that of the topic that was written (KIP-516).

    It is empty where positions name none, or several. `shows_origin`: whether the target's name does.
    """

    source: str
    target: str
    target_id: bytes
    shows_origin: bool


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """A topic of the target whose source is gone; `due` in epoch seconds."""

    name: str
    source: str
    topic_id: bytes
    due: float


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """`missed` replaces the stored absences. `reasons` gives for each source why its copy stays."""

    missed: Mapping[str, Missed] = field(default_factory=dict)
    deletes: tuple[DeleteTopic, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    held: str | None = None
    """Why nothing is deleted at all."""

    def due(self, now: float) -> tuple[DeleteTopic, ...]:
        return tuple(topic for topic in self.deletes if topic.due <= now)


@dataclass(frozen=True, slots=True)
class Sight:
    """Both clusters at `now`, in epoch seconds. `absences` is asked of what `absent` names."""

    now: float
    source: Collection[str]
    """Every topic that the source lists, but the brokers' own."""
    target: Mapping[str, ListedTopic]
    absences: Mapping[str, Absence]


NOTHING_LISTED: Final = "the source lists no topic at all"
NAMES_KEPT: Final = (
    "the replication policy keeps topics' names, so applications of the target may have written to them too"
)
_ORIGIN_HIDDEN: Final = (
    "its name does not show that it is a copy, so applications of the target may have written to it too"
)
_NO_EVIDENCE: Final = "no stored position shows that this mirror wrote the topic that is there now"
_HIDDEN: Final = "it may not be described at the source, so whether it was deleted is unknown"
_UNCLEAR: Final = "the source does not say what became of it"


def absent(copied: Iterable[Copied], source: Collection[str], target: Mapping[str, ListedTopic]) -> set[str]:
    """Return the copied topics that the target still has and the source does not list."""
    return {one.source for one in copied if one.source not in source and one.target in target}


@dataclass(frozen=True, slots=True)
class GracePeriod:
    """Tells how long a topic must be missing, and the longest time between two checks meanwhile."""

    grace_s: float
    gap_s: float


def plan_deletes(
    copied: Collection[Copied], sight: Sight, missed: Mapping[str, Missed], grace: GracePeriod
) -> DeletePlan:
    """`missed` are the stored absences. The absence of a topic that is listed again is dropped.

    After too long a time without a check the grace period starts again.
    """
    gone = absent(copied, sight.source, sight.target)
    remembered = {topic: one for topic, one in missed.items() if topic in gone}
    there = [one for one in copied if one.target in sight.target]
    held = _held(len(gone), len(there), sight)
    if held is not None:
        unknown = {topic for topic, absence in sight.absences.items() if absence is Absence.UNKNOWN}
        return DeletePlan({topic: one for topic, one in remembered.items() if topic in unknown}, held=held)
    noted: dict[str, Missed] = {}
    reasons: dict[str, str] = {}
    deletes: list[DeleteTopic] = []
    for one in sorted(there, key=lambda one: one.source):
        if one.source not in gone:
            continue
        reason = _reason_to_keep(one, sight)
        if reason is not None:
            reasons[one.source] = reason
            continue
        noted[one.source] = since = _missed(remembered.get(one.source), sight.now, grace.gap_s)
        due = since.since + grace.grace_s
        deletes.append(DeleteTopic(one.target, one.source, one.target_id, due))
    return DeletePlan(noted, tuple(deletes), reasons)


def _held(gone: int, there: int, sight: Sight) -> str | None:
    if gone and not sight.source:
        return NOTHING_LISTED
    if 2 * gone > there:
        return f"{gone} of the {there} topics that were copied are missing at the source at once"
    return None


def _reason_to_keep(one: Copied, sight: Sight) -> str | None:
    if not one.shows_origin:
        return _ORIGIN_HIDDEN
    if not one.target_id or sight.target[one.target].topic_id != one.target_id:
        return _NO_EVIDENCE
    match sight.absences.get(one.source, Absence.UNCLEAR):
        case Absence.UNKNOWN:
            return None
        case Absence.HIDDEN:
            return _HIDDEN
        case Absence.UNCLEAR:
            return _UNCLEAR


def _missed(before: Missed | None, now: float, gap_s: float) -> Missed:
    """A clock that was set back starts the grace period again."""
    if before is None or not before.since <= before.seen_missing <= now:
        return Missed(now, now)
    return Missed(now, now) if now - before.seen_missing > gap_s else Missed(before.since, now)
