"""Compares one range of a partition with the same range of its mirror, reading both from their clusters."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sparkmirror.batches.agreement.compared_log import END, Span
from sparkmirror.batches.provenance_header import ProvenanceChange, ProvenanceHeader
from sparkmirror.batches.reencoding import Change
from sparkmirror.domain.client_settings import DECOMPRESSED_BYTES_MAX, ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.transforms.chain import Chain
from sparkmirror.verify.partition_log import Mirrored, PartitionLog, open_log
from sparkmirror.verify.record_comparison import Log, compare
from sparkmirror.verify.rules_and_result import Comparison, Rules


@dataclass(frozen=True, slots=True)
class Sides:
    """The settings to read both clusters of a flow, both at the isolation level of the flow's consumer."""

    flow: Flow
    source: ConsumerSettings
    target: ConsumerSettings
    left_out: frozenset[int] = frozenset()
    """Producer ids of the source whose batches came from the target: the flow does not copy them back."""
    provenance: ProvenanceHeader | None = None
    """The header that the flow adds to its records, if it does."""
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    """The flow's `batch.decompressed.bytes.max`."""
    transforms: Mapping[TopicPartition, Chain] = field(default_factory=dict)
    """The chains that may change records of source partitions."""
    others: frozenset[int] = frozenset()
    """Producer ids of the target whose batches other flows wrote, from other sources."""

    @property
    def modules(self) -> frozenset[str]:
        """The modules of functions that a comparison needs on an executor."""
        return frozenset().union(*(chain.modules for chain in self.transforms.values()))

    @property
    def connections(self) -> frozenset[ConnectionSettings]:
        """The connections that a comparison needs on an executor."""
        return frozenset({self.source.connection, self.target.connection})

    def source_log(self, partition: TopicPartition) -> AbstractContextManager[PartitionLog]:
        """The records that the flow copies, as they arrive on the target."""
        mirrored = Mirrored(self.left_out, self._change(partition), self.decompressed_bytes_max)
        return open_log(self.source, partition, self.flow.source, mirrored)

    def _change(self, partition: TopicPartition) -> Change | None:
        chain = self.transforms.get(partition)
        if chain is None:
            return None if self.provenance is None else ProvenanceChange(self.provenance)
        from sparkmirror.transforms.partition_change import PartitionChange  # noqa: PLC0415 - needs pyarrow

        return PartitionChange(chain, partition)

    def target_log(self, partition: TopicPartition) -> AbstractContextManager[PartitionLog]:
        opening = Mirrored(self.others, decompressed_bytes_max=self.decompressed_bytes_max)
        return open_log(self.target, partition, self.flow.target, opening)


@dataclass(frozen=True, slots=True)
class RangePlan:
    """The scope of one comparison. It is sent to the executor inside the task's closure, as a TaskPlan is."""

    sides: Sides
    source: TopicPartition
    target: TopicPartition
    source_span: Span
    target_span: Span
    rules: Rules
    lost: int = 0
    """The count of source offsets before the span that retention removed before they could be compared."""

    @property
    def size(self) -> int:
        """The count of offsets to read on both sides."""
        source, target = self.source_span, self.target_span
        return max(0, source.end - source.first) + max(0, target.end - target.first)


class RangeOutcome(NamedTuple):
    """The result of the plan with this number; `error` is why it could not be compared."""

    number: int
    comparison: Comparison | None
    error: str | None = None


def outcome_of(number: int, plan: RangePlan) -> RangeOutcome:
    """Compare a range, and return an error as its outcome. Blocks."""
    try:
        return RangeOutcome(number, verify_range(plan))
    except SparkmirrorError as error:
        return RangeOutcome(number, None, str(error))


def verify_range(plan: RangePlan) -> Comparison:
    """Compare a range. Blocks. Raises KafkaError and CorruptBatchError."""
    rules, sides = plan.rules, plan.sides
    if plan.source_span.first >= plan.source_span.end and rules.source_lost_beginning:
        return Comparison(not_comparable=max(plan.lost, plan.size))
    with ExitStack() as opened:
        source = opened.enter_context(sides.source_log(plan.source))
        target = opened.enter_context(sides.target_log(plan.target))
        aligned = _align(plan, source, target)
        found = compare(
            _log(source, aligned.source_span, is_compacted=rules.is_compacted),
            _log(target, aligned.target_span, is_compacted=rules.is_compacted),
            rules,
        )
    # Records that the source has lost may be those that the target still has and that are left out.
    lost = max(plan.lost, plan.size - aligned.size)
    late = aligned.source_span.first - plan.source_span.first if rules.begins_late else 0
    not_comparable, left_out = found.not_comparable + lost - late, found.left_out + late
    return replace(found, not_comparable=not_comparable, left_out=left_out)


def _log(log: PartitionLog, span: Span, *, is_compacted: bool) -> Log:
    later = log.batches(Span(span.end, END)) if is_compacted else ()
    return Log(log.batches(span), span, later)


def _align(plan: RangePlan, source: PartitionLog, target: PartitionLog) -> RangePlan:
    """Leave out records that one side has lost by retention: start with the first that both should have.

    Where that record isn't found soon, nothing is left out, and the comparison searches for it.
    """
    rules, timestamps = plan.rules, plan.rules.timestamps
    shift = plan.target_span.end - plan.source_span.end
    if rules.source_lost_beginning:
        first = source.first_record(plan.source_span, timestamps=timestamps)
        if first is not None and first.offset >= plan.source_span.first:
            found = target.find(first, first.offset + shift, plan.target_span, timestamps=timestamps)
            if found is not None:
                return replace(plan, target_span=Span(found, plan.target_span.end))
    if rules.target_lost_beginning:
        first = target.first_record(plan.target_span, timestamps=timestamps)
        if first is not None and first.offset >= plan.target_span.first:
            found = source.find(first, first.offset - shift, plan.source_span, timestamps=timestamps)
            if found is not None:
                return replace(plan, source_span=Span(found, plan.source_span.end))
    return plan
