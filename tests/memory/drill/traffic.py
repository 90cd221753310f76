"""Draws what producers write to a stage's sources, and when."""

import random
from typing import Final

from sparkmirror.batches.record_batch import NO_PRODUCER_ID
from sparkmirror.domain.incidents import OnBadBatch
from tests.memory.checked_flow import CheckedFlow
from tests.memory.source_records import SourceRecords
from tests.memory.stage import Stage

_TRANSACTION_S: Final = 4.0
"""So long a transaction of a source is open at most."""

_PRODUCERS: Final = 3


class Traffic:
    """Records of one flow's source. Some producers write in transactions, if the source has any."""

    def __init__(self, stage: Stage, flow: CheckedFlow, rng: random.Random) -> None:
        self._stage = stage
        self._flow = flow
        self._records: SourceRecords = flow.records
        self._rng = rng
        cluster = flow.ends.source
        self._plain = [NO_PRODUCER_ID, *(cluster.new_producer_id() for _ in range(_PRODUCERS))]
        self._transactional = [cluster.new_producer_id() for _ in range(_PRODUCERS)]

    @property
    def has_ended(self) -> bool:
        return not self._records.open_transactions

    def write(self) -> None:
        self.write_to(self._rng.choice(self._flow.partitions))

    def write_to(self, partition: int) -> None:
        rng, shape = self._rng, self._stage.shape
        count = rng.randint(1, shape.written_max)
        if shape.bad is not None and rng.random() < 0.15:
            self._write_bad(partition)
        elif shape.reads_committed and rng.random() < 0.6:
            self._write_in_transaction(partition, count)
        else:
            removed = []
            if shape.is_compacted and rng.random() < 0.5:
                removed = [at for at in range(count) if rng.random() < 0.4]
            self._records.write(partition, count, producer_id=rng.choice(self._plain), removed=removed)

    def _write_in_transaction(self, partition: int, count: int) -> None:
        producer_id = self._rng.choice(self._transactional)
        is_new = producer_id not in self._records.open_transactions
        self._records.write_in_transaction(producer_id, partition, count)
        if is_new:
            commit = self._rng.random() < 0.6
            self._stage.time.call_later(self._rng.uniform(0, _TRANSACTION_S), self._end, producer_id, commit)

    def _end(self, producer_id: int, commit: bool) -> None:
        self._records.end_transaction(producer_id, commit=commit)

    def _write_bad(self, partition: int) -> None:
        shape = self._stage.shape
        assert shape.bad is not None
        self._records.write_bad(
            partition,
            shape.bad,
            before=self._rng.randint(0, 2),
            after=self._rng.randint(0, 2),
            skipped=shape.on_bad_batch is OnBadBatch.SKIP,
        )

    def compact(self) -> str:
        """The log cleaner passes over a partition, up to its last batch and its first open transaction."""
        partition = self._rng.choice(self._flow.partitions)
        log, ledger = self._records.log(partition), self._records.ledgers[partition]
        last = log.batches[-1].base_offset if log.batches else 0
        end = min(last, log.last_stable_offset)
        old = [number for number, offset in enumerate(ledger.offsets) if log.start <= offset < end]
        chosen = [number for number in old if number not in ledger.bad and self._rng.random() < 0.3]
        self._records.compact(partition, chosen)
        return f"{partition} of {self._flow.ends.flow}: the cleaner removes records {chosen}"
