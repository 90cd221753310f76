"""Defines the rules and the result of comparing a partition with its mirror. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX

DIFFERENCES_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for records that are found on one side only."""

    timestamps: bool = True
    """False where the target's broker stamps its own."""
    producer_id: int | None = None
    """The mirror's on the target: records with it were certainly written by the mirror."""
    source_lost_beginning: bool = False
    """Retention has removed records of the source: the target may start with older ones."""
    target_lost_beginning: bool = False
    """The same of the target, or the mirror started in the middle of the source."""
    begins_late: bool = False
    """Whether the target has all that was mirrored, and what the source has before it was left out."""
    source_is_compacted: bool = False
    target_is_compacted: bool = False
    target_end_is_known: bool = True
    """Whether the target's span ends with the copy of the source's last record, or somewhere behind it."""
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    """The flow's `batch.decompressed.bytes.max`, for all batches that are opened at a time."""
    same_offsets: bool = False
    """Whether equal records must have equal offsets (`offsets.preserve`)."""

    @property
    def is_compacted(self) -> bool:
        return self.source_is_compacted or self.target_is_compacted


class Difference(NamedTuple):
    """`what` is missing, extra, order, offset, or the parts that changed.

    A side without the record has no offset.
    """

    what: str
    source_offset: int | None
    target_offset: int | None
    detail: str

    def __str__(self) -> str:
        return (
            f"{self.what}: source offset {_or_none(self.source_offset)}, "
            f"target offset {_or_none(self.target_offset)}: {self.detail}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts of records by result; `differences` are the first few of `counts`, by offset.

    `not_comparable` records were lost on one side by retention or compaction. `gave_up` is the reason why the
    rest was not compared, None if all was.
    """

    equal: int = 0
    foreign: int = 0
    not_comparable: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    gave_up: str | None = None
    left_out: int = 0
    """Records before the first mirrored one: `auto.offset.reset` or `start.at` has left them out."""

    @property
    def is_equal(self) -> bool:
        return not self.counts and self.gave_up is None

    @property
    def difference_count(self) -> int:
        """The count of all differences, also of those that are not shown."""
        return sum(self.counts.values())

    def __add__(self, other: "Comparison") -> "Comparison":
        """The comparison of a range and the one that follows it."""
        return Comparison(
            self.equal + other.equal,
            self.foreign + other.foreign,
            self.not_comparable + other.not_comparable,
            dict(Counter(self.counts) + Counter(other.counts)),
            (*self.differences, *other.differences)[:DIFFERENCES_SHOWN_MAX],
            self.gave_up or other.gave_up,
            self.left_out + other.left_out,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "foreign": self.foreign,
            "not_comparable": self.not_comparable,
            "counts": dict(self.counts),
            "differences": [difference._asdict() for difference in self.differences],
            "gave_up": self.gave_up,
            "left_out": self.left_out,
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Comparison":
        """Raises KeyError or TypeError for anything else than `to_json` makes."""
        differences = tuple(Difference(**difference) for difference in saved["differences"])
        return cls(**{**saved, "differences": differences})


def _or_none(offset: int | None) -> str:
    return "-" if offset is None else str(offset)
