"""Brings copies to where their sources end, and makes leaders refuse all that a flow's attempts send later.

Where the source ends with a gap, the control markers that fill it are the fence. Else an own marker is
added: an offset that no consumer returns.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL
from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import FencedError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST, list_offsets
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.transactions.control_markers import ControlMarkers, Gap, WrongEndError
from sparkmirror.kafka.transactions.fencing import Claim, Fencing
from sparkmirror.settings.copy_partition import CopyPartition

_PAUSE_S: Final = 0.2
_TRIES: Final = 20
"""An attempt that still runs may claim a partition once more, until it finds the promotion."""

Fenced = Mapping[TopicPartition, int | SparkmirrorError]
"""The first offset that the flow has not written, by source partition, or the reason why it is not fenced."""


@dataclass(frozen=True, slots=True)
class LastFence:
    """`ids` are the transactional ids of the source partitions. Blocks. Raises KafkaError."""

    target: ConnectionSettings
    ids: Mapping[TopicPartition, str]

    def end(self, partitions: Sequence[CopyPartition], source_ends: Mapping[TopicPartition, int]) -> Fenced:
        """Fence them, those with a source's end at that offset: from the target's end to it are only gaps."""
        network, found = network_of(self.target), dict[TopicPartition, int | SparkmirrorError]()
        begins: dict[TopicPartition, tuple[int, int]] = {}
        left = {each.source: each for each in partitions}
        for _ in range(_TRIES):
            found.update(self._try(left, source_ends, begins))
            left = {at: each for at, each in left.items() if _passes(found[at])}
            if not left:
                break
            network.sleep(_PAUSE_S)
        return found

    def _try(
        self,
        left: Mapping[TopicPartition, CopyPartition],
        source_ends: Mapping[TopicPartition, int],
        begins: dict[TopicPartition, tuple[int, int]],
    ) -> Fenced:
        """`begins` remembers the end and the epoch at the first try: the first marker counts."""
        claims, errors = self._claim(left)
        ends = self._ends([left[at].target for at in claims])
        known: dict[TopicPartition, int] = {}
        for at, producer in claims.items():
            end = ends[left[at].target]
            if isinstance(end, SparkmirrorError):
                errors[at] = end
            else:
                known[at] = end
                begins.setdefault(at, (end, producer.epoch))
        gaps = {
            at: Gap(self.ids[at], claims[at], left[at].target, end, source_ends[at], is_fenced=False)
            for at, end in known.items()
            if end < source_ends.get(at, 0)
        }
        filled = self._fill(gaps)
        fenced = self._mark({at: Claim(claims[at], left[at].target) for at in known if at not in gaps})
        return {**errors, **filled, **self._places(fenced, claims, left, begins)}

    def _claim(
        self, sources: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, ProducerId], dict[TopicPartition, int | SparkmirrorError]]:
        with closing(Fencing(self.target)) as fencing:
            found = fencing.claim([self.ids[at] for at in sources])
        claims, errors = dict[TopicPartition, ProducerId](), dict[TopicPartition, int | SparkmirrorError]()
        for at in sources:
            claim = found[self.ids[at]]
            if isinstance(claim, SparkmirrorError):
                errors[at] = claim
            else:
                claims[at] = claim
        return claims, errors

    def _ends(self, targets: Collection[TopicPartition]) -> Mapping[TopicPartition, int | SparkmirrorError]:
        return list_offsets(ConsumerSettings(self.target), targets, LATEST)

    def _fill(self, gaps: Mapping[TopicPartition, Gap]) -> Fenced:
        found: dict[TopicPartition, int | SparkmirrorError] = {}
        left = dict(gaps)
        with closing(ControlMarkers(self.target)) as markers:
            while left:
                results = markers.fill(list(left.values()))
                for at, gap in list(left.items()):
                    result = results[gap.partition]
                    if isinstance(result, SparkmirrorError) or result >= gap.end:
                        found[at] = result
                        del left[at]
                    else:
                        left[at] = gap._replace(begin=result, is_fenced=True)
        return found

    def _mark(
        self, claims: Mapping[TopicPartition, Claim]
    ) -> Mapping[TopicPartition, SparkmirrorError | None]:
        with closing(Fencing(self.target)) as fencing:
            marked = fencing.mark({self.ids[at]: claim for at, claim in claims.items()})
        return {at: marked[self.ids[at]] for at in claims}

    def _places(
        self,
        marked: Mapping[TopicPartition, SparkmirrorError | None],
        claims: Mapping[TopicPartition, ProducerId],
        left: Mapping[TopicPartition, CopyPartition],
        begins: Mapping[TopicPartition, tuple[int, int]],
    ) -> Fenced:
        """Return the offset of the first marker that this fence has written."""
        found: dict[TopicPartition, int | SparkmirrorError] = {}
        for at, error in marked.items():
            if error is not None:
                found[at] = error
                continue
            begin, epoch = begins[at]
            first = ProducerId(claims[at].id, epoch)
            place = self._await_marker(left[at].target, begin, first, claims[at])
            found[at] = (
                place if place is not None else RetriableError(f"{left[at].target}: no marker is seen")
            )
        return found

    def _await_marker(
        self, partition: TopicPartition, begin: int, first: ProducerId, last: ProducerId
    ) -> int | None:
        """The offset of the first marker from `first` on, when `last` has one that is replicated."""
        network = network_of(self.target)
        deadline = network.time() + self.target.request_timeout_s
        while network.time() < deadline:
            place: int | None = None
            end = self._ends([partition])[partition]
            with closing(SpanReader(ConsumerSettings(self.target))) as reader:
                for batch in reader.read(partition, begin, end if isinstance(end, int) else begin):
                    header = batch.header
                    is_own = header.attributes & CONTROL and header.producer_id == first.id
                    if is_own and header.producer_epoch >= first.epoch:
                        place = header.base_offset if place is None else place
                        if header.producer_epoch == last.epoch:
                            return place
            network.sleep(_PAUSE_S / 10)
        return None


def _passes(result: int | SparkmirrorError) -> bool:
    if isinstance(result, FencedError | WrongEndError):
        return True
    return isinstance(result, SparkmirrorError) and result.retriable
