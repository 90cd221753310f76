"""Defines the incidents that a mirror meets in topics, and the configured reaction to each.

Options that Java MM2 does not have: it continues without a word, or stops without one.
"""

from enum import Enum
from typing import Annotated, Final, NamedTuple

from sparkmirror.domain.errors import ClusterChangedError
from sparkmirror.domain.option_fields import FromOption
from sparkmirror.domain.preserving import REFUSED


class OnDataLoss(Enum):
    """`on.data.loss`: records are gone from the source before they were copied."""

    RECORD = "record"
    """Log it, count it, continue with the records that exist."""
    FAIL = "fail"
    """Stop the partition until a user acts."""


class OnTopicRecreated(Enum):
    """`on.topic.recreated`: a topic of that name has another topic id (KIP-516) than before."""

    RECORD = "record"
    """Report it and continue: at a new source's first record, or with the next record in a new target."""
    FAIL = "fail"
    """Stop the partition until a user acts."""
    RESTART = "restart"
    """Copy all that the source has; with `auto.offset.reset=latest` as `RECORD`, which leaves out nothing."""


class OnClusterChange(Enum):
    """`on.cluster.change`: another cluster answers at an alias's address than before."""

    STOP = "stop"
    """Write nothing there until an operator says which cluster is meant."""
    CONTINUE = "continue"
    """Mirror the cluster that answers as at a first start, with state of its own."""


class OnNewerPosition(Enum):
    """`on.newer.position`: another connector of the flow has copied a partition further since."""

    CONTINUE = "continue"
    """Continue where that one has stopped."""
    REPEAT = "repeat"
    """Continue at the own position, as Java: what is in between comes a second time."""


class OnBadBatch(Enum):
    """`on.bad.batch`: a batch that can't be read, or that the target will never take."""

    FAIL = "fail"
    """Stop the partition, and try again now and then: the cause may be gone."""
    SKIP = "skip"
    """Leave a dead-letter record that names it, and continue behind it."""


class OnLoop(Enum):
    """`on.loop`: records that were mirrored from the target would be mirrored back to it."""

    FILTER = "filter"
    """Leave them out."""
    FAIL = "fail"
    """Stop the partition until a user acts."""
    COPY = "copy"
    """Copy them, as Java MM2: where no name shows the cycle they circulate without end."""


class Reactions(NamedTuple):
    """The configured reaction to each kind of incident."""

    on_data_loss: Annotated[OnDataLoss, FromOption("on.data.loss")] = OnDataLoss.RECORD
    on_topic_recreated: Annotated[OnTopicRecreated, FromOption("on.topic.recreated")] = (
        OnTopicRecreated.RECORD
    )
    on_bad_batch: Annotated[OnBadBatch, FromOption("on.bad.batch")] = OnBadBatch.FAIL
    on_loop: Annotated[OnLoop, FromOption("on.loop")] = OnLoop.FILTER
    on_cluster_change: Annotated[OnClusterChange, FromOption("on.cluster.change")] = OnClusterChange.STOP
    on_newer_position: Annotated[OnNewerPosition, FromOption("on.newer.position")] = OnNewerPosition.CONTINUE


DEFAULT_REACTIONS = Reactions()


class IncidentKind(Enum):
    """The kinds of incidents, by their names in progress records."""

    RECORDS_LOST = "records-lost"
    """Gone from the source before they were copied."""
    SOURCE_TRUNCATED = "source-truncated"
    SOURCE_RECREATED = "source-recreated"
    TARGET_TRUNCATED = "target-truncated"
    TARGET_RECREATED = "target-recreated"
    RECORDS_REPEATED = "records-repeated"
    """A leader of the target took batches of a fenced attempt: it had forgotten, or lost, the fence."""
    UNFENCED = "unfenced"
    """Attempts can't be fenced: each copies at least once, from the stored position."""
    NOT_READ_BACK = "not-read-back"
    """The target can't be read, or retention has removed what the attempt before wrote: records behind the
    stored position may come twice."""
    NOT_IDEMPOTENT = "not-idempotent"
    """Written at least once: the target gives no producer id, or none is wanted."""
    OFFSET_MISMATCH = "offset-mismatch"
    """Offsets are preserved, and the target has a record at another offset than the source: stopped."""
    OFFSETS_TRANSLATED = "offsets-translated"
    """Offsets can't be preserved any more: the partition continues with others."""
    OFFSET_GAP = "offset-gap"
    """Offsets are preserved, and a gap takes long to fill; reported with counts."""
    BATCH_SKIPPED = "batch-skipped"
    LOOP = "loop"
    """The opposite flow's records are left out; reported once, and counted elsewhere."""
    LOOPS_UNSEEN = "loops-unseen"
    """The producer ids of the opposite flow can't be read: its records are copied back."""


LASTING: Final = frozenset({IncidentKind.UNFENCED, IncidentKind.NOT_IDEMPOTENT})
"""The kinds that hold of every attempt of a task: reported once of each partition."""


class Incident(NamedTuple):
    """`text` is for people; `records` counts those concerned, as far as that is known."""

    kind: IncidentKind
    text: str
    records: int = 0

    def refusal(self, reactions: Reactions) -> str | None:
        """Return why the partition may not continue behind it, and the setting; None where it may."""
        if self.kind in (IncidentKind.SOURCE_RECREATED, IncidentKind.TARGET_RECREATED):
            fails = reactions.on_topic_recreated is OnTopicRecreated.FAIL
            option, ways = "on.topic.recreated", "record or restart"
        else:
            fails = reactions.on_data_loss is OnDataLoss.FAIL
            option, ways = "on.data.loss", "record"
        happened, _, _ = self.text.partition("; continuing")
        return f"{happened}; the partition stops, since {option} is fail. Set it to {ways}" if fails else None


AT_LEAST_ONCE: Final = "copying at least once"


class ChangedCluster(NamedTuple):
    """Another cluster answers for an alias than the one that is meant, both by Kafka's ids."""

    alias: str
    meant: str
    found: str
    address: str

    @property
    def why(self) -> str:
        return (
            f"{self.alias} is the cluster {self.meant}, and {self.address} leads to the cluster {self.found}"
        )

    @property
    def remedy(self) -> str:
        return (
            f"Let the address lead to {self.meant} again; or, if {self.found} is meant from now on, restart "
            f"with --accept-cluster {self.alias}, or set on.cluster.change=continue: the copy then begins as "
            "at a first start"
        )

    @property
    def error(self) -> ClusterChangedError:
        """The incident `cluster-changed`; the driver tells it, since tasks can't report it to the target."""
        return ClusterChangedError(f"cluster-changed: {self.why}: nothing is written there. {self.remedy}")


def records_lost(position: int, start: int) -> Incident:
    """`position` was the next upstream offset to copy, and does not exist; `start` is the next that does.

    At most so many, as offsets go: transactions and compaction leave gaps.
    """
    count = start - position
    if count > 0:
        text = (
            f"offsets {position} to {start - 1} were gone from the source before they were copied "
            f"({count} records); continuing from {start}"
        )
        return Incident(IncidentKind.RECORDS_LOST, text, count)
    return Incident(
        IncidentKind.SOURCE_TRUNCATED,
        f"offset {position} is behind the source's end: it was truncated or recreated; "
        f"continuing from {start}",
    )


def source_truncated(position: int, at: int) -> Incident:
    """Say that from offset `at` on the log differs from the one that was copied up to `position`."""
    return Incident(
        IncidentKind.SOURCE_TRUNCATED,
        f"offsets {at} to {position - 1} were copied, and the source has lost them since (as by an unclean "
        f"leader election): {position - at} records are on the target only; continuing from {at}",
        position - at,
    )


def source_recreated(position: int, first: int) -> Incident:
    return Incident(
        IncidentKind.SOURCE_RECREATED,
        f"the source topic was deleted and created again; of the old one everything before offset {position} "
        f"was copied; continuing from offset {first} of the new one",
    )


def target_recreated(position: int) -> Incident:
    """`position` is the next upstream offset to copy: what is before it is not in the new topic."""
    without = f", without what was copied before ({position} records at most)" if position else ""
    return Incident(
        IncidentKind.TARGET_RECREATED,
        "the target topic was deleted and created again; continuing in the new one from offset "
        f"{position} of the source{without}",
        position,
    )


def target_renamed(before: str, now: str, position: int) -> Incident:
    return Incident(
        IncidentKind.TARGET_RECREATED,
        f"records went to {before} before the naming of topics was changed, which keeps what it has and gets "
        f"nothing more; continuing in {now} from offset {position} of the source",
    )


def target_truncated(target: object, end: int, acknowledged: int, position: int) -> Incident:
    return Incident(
        IncidentKind.TARGET_TRUNCATED,
        f"{target} ends at {end}, but was acknowledged up to {acknowledged}: the target lost "
        f"{acknowledged - end} records, or was recreated; continuing from offset {position} of the source",
        acknowledged - end,
    )


def target_overwritten(target: object, offset: int) -> Incident:
    return Incident(
        IncidentKind.TARGET_TRUNCATED,
        f"offset {offset} of {target} was acknowledged, and its new leader has another writer's entry there: "
        "the target lost records. If a task of this mirror that was frozen wrote it, records are there twice",
    )


def records_repeated(target: object, first: int, last: int) -> Incident:
    return Incident(
        IncidentKind.RECORDS_REPEATED,
        f"between offsets {first} and {last} of {target} are batches that its leader should have refused. It "
        "took them, having forgotten their producer (producer.id.expiration.ms): records may be there twice",
    )


def not_idempotent(reason: object) -> Incident:
    return Incident(
        IncidentKind.NOT_IDEMPOTENT,
        f"{AT_LEAST_ONCE}: batches have no sequences, so one that is sent again may be there twice: {reason}",
    )


def unfenced(reason: object) -> Incident:
    return Incident(
        IncidentKind.UNFENCED,
        f"{AT_LEAST_ONCE}: attempts can't be fenced, so a restart, or a task that runs twice, repeats "
        f"what was written behind the stored position: {reason}",
    )


def offset_mismatch(target: object, seen: int, expected: int) -> Incident:
    return Incident(
        IncidentKind.OFFSET_MISMATCH,
        f"a record of offset {expected} is at offset {seen} of {target}: another producer writes to it, or "
        "it was truncated or created again (offsets.on.mismatch says what follows)",
    )


def offset_taken(target: object, offset: int) -> Incident:
    return Incident(
        IncidentKind.OFFSET_MISMATCH,
        f"{target} has a control marker at offset {offset}, where a record belongs: its transaction "
        "coordinator has repeated one, as when brokers restart (offsets.on.mismatch says what follows)",
    )


def offsets_translated(what: str, position: int) -> Incident:
    """`position` is the next upstream offset to copy."""
    return Incident(
        IncidentKind.OFFSETS_TRANSLATED,
        f"{REFUSED}: {what}. From offset {position} on they are translated "
        "(offsets.on.mismatch), until the target topic is deleted and recreated",
    )


def offset_gap(first: int, last: int, cost_s: float) -> Incident:
    return Incident(
        IncidentKind.OFFSET_GAP,
        f"offsets {first} to {last} have no record at the source: {last - first + 1} control markers take "
        f"their places, which takes about {cost_s:.0f} s (offsets.gap)",
    )


def batch_skipped(first: int, last: int, error: object) -> Incident:
    return Incident(
        IncidentKind.BATCH_SKIPPED,
        f"offsets {first} to {last} were left out, and a dead-letter record names them: {error}",
        last - first + 1,
    )


def cycle_found(first: int, last: int, source: object, target: object) -> Incident:
    return Incident(
        IncidentKind.LOOP,
        f"offsets {first} to {last} were mirrored from {target} to {source}: they, and what follows of that "
        "kind, are left out (on.loop=filter)",
    )


def loops_unseen(error: object) -> Incident:
    return Incident(
        IncidentKind.LOOPS_UNSEEN,
        f"if a flow in the other direction writes to this source, its records are copied back: {error}",
    )
