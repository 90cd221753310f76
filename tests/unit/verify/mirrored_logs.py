"""A partition and its mirror as logs in memory, which brokers' cleaner, retention and transactions shape."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from sparkmirror.batches.agreement.compared_log import Span
from sparkmirror.batches.record_batch import CONTROL, TRANSACTIONAL, FetchedBatch, iterate_batches
from sparkmirror.verify.record_comparison import Log, compare
from sparkmirror.verify.rules_and_result import Comparison, Rules
from tests.memory.committed import committed
from tests.memory.partition_log import PartitionLog
from tests.support.batches import NOW_MS, Rec, decode, encode

Logs = tuple[PartitionLog, PartitionLog]
"""The source's and the target's."""

OURS, THEIRS = 7, 9
ABORTED = Rec(0, NOW_MS, b"aborted", b"aborted", (("h", b"0"),))


@dataclass(frozen=True, slots=True)
class Writing:
    """The way in which a log is written: the sizes of its batches, and the codec.

    In transactions, each batch is one. An aborted one comes before every batch at these places.
    """

    sizes: Sequence[int] = ()
    codec: int = 0
    producer_id: int = -1
    in_transactions: bool = False
    aborted_before: frozenset[int] = frozenset()

    def log(self, records: Sequence[Rec]) -> PartitionLog:
        log, left, at, number = PartitionLog({}), iter(self.sizes), 0, 0
        while at < len(records):
            size = next(left, 1)
            if self.in_transactions and number in self.aborted_before:
                self._append(log, [ABORTED], commit=False)
            self._append(log, records[at : at + size], commit=True)
            at, number = at + size, number + 1
        return log

    def _append(self, log: PartitionLog, records: Sequence[Rec], *, commit: bool) -> None:
        entry = log.producers.entries.get(self.producer_id)
        producer = {
            "producer_id": self.producer_id,
            "producer_epoch": 0 if self.producer_id >= 0 else -1,
            "base_sequence": -1 if self.producer_id < 0 else 0 if entry is None else entry.last_sequence + 1,
        }
        attributes = self.codec | (TRANSACTIONAL if self.in_transactions else 0)
        relative = [record._replace(offset=at) for at, record in enumerate(records)]
        batch = encode(relative, codec=self.codec, **producer, attributes=attributes)
        assert log.append(bytes(batch), 2 * NOW_MS).error == 0
        if self.in_transactions:
            log.append_marker(self.producer_id, 0, 2 * NOW_MS, commit=commit)


def read(log: PartitionLog) -> list[FetchedBatch]:
    """Read a log as `sparkmirror verify` does."""
    bases = {decoded.header.base_offset for decoded in committed(log)}
    batches = (
        batch for stored in log.batches for batch in iterate_batches(memoryview(bytearray(stored.data)))
    )
    return [
        batch
        for batch in batches
        if batch.header.base_offset in bases
        and batch.header.record_count
        and not batch.header.attributes & CONTROL
    ]


def offsets(log: PartitionLog) -> list[int]:
    found = (record.offset for batch in read(log) for record in decode(batch.data))
    return [offset for offset in found if offset >= log.start]


def verified(logs: Logs, rules: Rules) -> Comparison:
    source_log, target_log = (Log(read(log), Span(log.start, log.end)) for log in logs)
    return compare(source_log, target_log, rules)


def written(pair: tuple[Writing, Writing], records: Sequence[Rec], copies: Sequence[Rec]) -> Logs:
    return pair[0].log(records), pair[1].log(copies)


def of_keys(keys: Iterable[int]) -> list[Rec]:
    """A record for each; no two are the same."""
    return [
        Rec(at, NOW_MS + 2 * at, b"k%d" % key, b"v%d" % at, (("h", b"%d" % at),))
        for at, key in enumerate(keys)
    ]


writings = st.builds(Writing, st.lists(st.integers(1, 5), max_size=8), st.sampled_from([0, 4]))
pairs = st.tuples(writings, writings.map(lambda writing: replace(writing, producer_id=OURS)))
"""Writings of the source and the target."""


@st.composite
def transactional(draw: st.DrawFn, producer_id: int = THEIRS) -> Writing:
    sizes = draw(st.lists(st.integers(1, 5), max_size=8))
    return Writing(sizes, 0, producer_id, True, frozenset(draw(st.sets(st.integers(0, 9), max_size=4))))
