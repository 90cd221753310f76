"""Detects cycles: records that the opposite flow wrote to a source, by the producer ids of their batches.

Under a policy that keeps names (Identity) no name shows that `orders` of B came from A. But every
batch that we write carries a producer id of its cluster, and a flow whose policy shows no cycle records its
ids there before it uses them (`storage.producer_id_topic`). A reader of that cluster looks an id up once.
Longer rings, and those that Java MM2 is part of, need a header in every record (`provenance_header`).
"""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkmirror.batches.columns import Headers
from sparkmirror.batches.provenance_header import ProvenanceChange, ProvenanceHeader
from sparkmirror.batches.record_batch import NO_PRODUCER_ID, BatchHeader
from sparkmirror.batches.reencoding import Change
from sparkmirror.domain.incidents import OnLoop
from sparkmirror.policies.replication import ReplicationPolicy, RoutedPolicy

_OTHERS_MAX: Final = 100_000
"""The ids of other producers that are remembered; beyond that they are looked up again."""

_SAMPLE: Final = "topic"


def names_show_origin(policy: ReplicationPolicy, source: str, topic: str = _SAMPLE) -> bool:
    """Whether the name of a copy shows its origin, so that `is_cycle` detects cycles."""
    if isinstance(policy, RoutedPolicy):
        return False
    remote = policy.format_remote_topic(source, topic)
    return remote != topic and policy.topic_source(remote) == source


class UnknownWriterError(Exception):
    """A batch whose producer id must be looked up first. Nothing behind it has been copied."""

    def __init__(self, producer_id: int) -> None:
        super().__init__(f"producer id {producer_id}")
        self.producer_id = producer_id


class CycleError(Exception):
    """A batch was mirrored from the target, and `on.loop` is fail. Nothing behind it has been copied."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"offsets {first} to {last} were mirrored from the target")
        self.offsets = first, last


class KnownWriters:
    """The producer ids of a cluster that belong to flows from our target. Safe in any thread."""

    def __init__(self, others_max: int = _OTHERS_MAX) -> None:
        self._others_max = others_max
        self._from_target: set[int] = set()
        self._others = {NO_PRODUCER_ID}

    @property
    def from_target(self) -> frozenset[int]:
        return frozenset(self._from_target)

    def are_from_target(self, producer_id: int) -> bool | None:
        """Whether its records were mirrored from there; None until it's looked up."""
        if producer_id in self._from_target:
            return True
        return False if producer_id in self._others else None

    def unknown(self, producer_ids: Iterable[int]) -> set[int]:
        return {number for number in producer_ids if self.are_from_target(number) is None}

    def learn(self, from_target: Iterable[int], others: Collection[int] = ()) -> None:
        """A recorded id replaces an earlier lookup that found none."""
        self._from_target.update(from_target)
        if len(self._others) + len(others) > self._others_max:
            self._others = {NO_PRODUCER_ID}
        self._others.update(others)


class CycleFilter:
    """The cycles of one partition: `records` were left out, `first` are the offsets of the first."""

    def __init__(
        self,
        writers: KnownWriters,
        on_loop: OnLoop = OnLoop.FILTER,
        provenance: ProvenanceHeader | None = None,
    ) -> None:
        """`provenance` adds its header to every record, and finds cycles by it."""
        self._writers = writers
        self._fails = on_loop is OnLoop.FAIL
        self._provenance = provenance
        self.records = 0
        self.first: tuple[int, int] | None = None

    def drops(self, header: BatchHeader) -> bool:
        """Whether the batch comes back. Raises UnknownWriterError, CycleError under `on.loop=fail`."""
        from_target = self._writers.are_from_target(header.producer_id)
        if not from_target:
            if from_target is None:
                raise UnknownWriterError(header.producer_id)
            return False
        self._found(header.base_offset, header.last_offset, header.record_count)
        return True

    @property
    def change(self) -> Change | None:
        """The change that adds the header to records, and leaves out those that come back."""
        if self._provenance is None:
            return None
        return ProvenanceChange(self._provenance, lambda offset: self._found(offset, offset, 1))

    def keeps(self, headers: Headers) -> NDArray[np.bool_] | None:
        """The batches that are no cycles, of many; None if they must be checked one by one."""
        writers = headers["producer_id"]
        known = {number: self._writers.are_from_target(number) for number in np.unique(writers).tolist()}
        from_target = [number for number, is_from_target in known.items() if is_from_target]
        if None in known.values() or (from_target and self._fails):
            return None
        kept = ~np.isin(writers, from_target)
        if from_target:
            self._note(headers[~kept])
        return kept

    def _found(self, first: int, last: int, records: int) -> None:
        if self._fails:
            raise CycleError(first, last)
        self.records += records
        self.first = self.first or (first, last)

    def _note(self, left_out: Headers) -> None:
        self.records += int(left_out["record_count"].sum())
        if self.first is None:
            first = int(left_out["base_offset"][0])
            self.first = first, first + int(left_out["last_offset_delta"][0])
