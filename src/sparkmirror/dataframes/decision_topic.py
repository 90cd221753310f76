"""Keeps decisions in a compacted topic, and carries them out: a driver's part of writing exactly once.

A decision is written under a transactional id of the prefix. A driver initialises it before tasks start, so
whatever an older driver decides later is refused.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, NamedTuple

from sparkmirror.batches.aborted_transactions import is_abort_marker
from sparkmirror.batches.log_records import LogRecord, decode_log_batch, encode_log_batch
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import CONTROL, rewrite_header
from sparkmirror.dataframes.decision_record import Decision, Prepared
from sparkmirror.dataframes.write_options import WriteOptions
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import (
    FencedError,
    KafkaError,
    RetriableError,
    SparkmirrorError,
    UnclearTransactionError,
)
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, await_stable, require_offsets
from sparkmirror.kafka.data.partition_reader import SpanReader
from sparkmirror.kafka.data.single_batches import produce_batches
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.transactions.open_transactions import open_transactions
from sparkmirror.kafka.transactions.transaction_coordinator import COMPLETING
from sparkmirror.kafka.transactions.transaction_runs import Transactions, fence
from sparkmirror.kafka.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    PRODUCER_FENCED,
)
from sparkmirror.storage.topic_creation import COMPACTED, ensure_topics, require_compacted

_BROKERS_DEFAULT: Final = -1
_CONFIG: Final = {
    **COMPACTED,
    # Each micro-batch adds a record: so little is left that reading it takes no time.
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
_NEAR_END: Final = 64
"""The offsets that are looked through first; then four times as many, and so on."""
_DECISION_TIMEOUT_S: Final = 60.0
_END: Final = 1 << 62
_TOGETHER_MAX: Final = 8
"""Transactions that are ended at a time."""
_FENCED: Final = frozenset({INVALID_PRODUCER_EPOCH, PRODUCER_FENCED})


class Decider(NamedTuple):
    """The producer under which a driver may decide, until another driver starts."""

    producer: ProducerId
    is_version_2: bool


class Decisions:
    """The decisions of one prefix. Every method blocks and raises KafkaError."""

    def __init__(self, options: WriteOptions) -> None:
        assert options.prefix is not None
        self._options = options
        self._settings = options.producer.connection
        self._partition = TopicPartition(options.decisions_topic, 0)
        self._key = options.prefix.encode()

    def ensure_topic(self) -> None:
        """Create the topic of decisions if it is missing."""
        topic = TopicCreation(self._partition.topic, 1, _BROKERS_DEFAULT, _CONFIG)
        with closing(Cluster(self._settings)) as cluster:
            if cluster.partitions(topic.name):
                return
        with closing(Admin(self._settings)) as admin:
            ensure_topics(admin, [topic])
            admin.await_partitions({topic.name: 1}, self._settings.request_timeout_s)

    def check_topic(self) -> None:
        """Raises ConfigError for a topic from which decisions may expire."""
        with closing(Admin(self._settings)) as admin:
            require_compacted(admin, "decisions.topic", self._partition.topic, "decisions")

    def take_over(self) -> Decider:
        """Fence the driver before."""
        with closing(self._transactions()) as transactions:
            return Decider(transactions.init(), transactions.is_version_2)

    def last(self) -> Decision | None:
        """The last decision that was committed."""
        await_stable(self._settings, self._partition.topic)
        consumer = ConsumerSettings(self._settings, read_committed=True)
        start = require_offsets(consumer, [self._partition], EARLIEST)[self._partition]
        end = require_offsets(consumer, [self._partition], LATEST)[self._partition]
        near = _NEAR_END
        with closing(SpanReader(consumer)) as reader:
            while True:
                begin = max(start, end - near)
                found = self._last_between(reader, begin, end)
                if found is not None or begin == start:
                    return found
                near *= 4

    def decide(self, decider: Decider, decision: Decision) -> None:
        """Write the decision. Raises FencedError if another driver has taken over."""
        record = LogRecord(self._key, decision.encode())
        data = encode_log_batch([record], int(time.time() * 1000))
        rewrite_header(data, *decider.producer, 0, transactional=True)
        try:
            with closing(self._transactions()) as transactions, closing(Cluster(self._settings)) as cluster:
                transactions.resume(decider.producer, (), is_version_2=decider.is_version_2)
                transactions.add([self._partition])
                self._write(cluster, transactions, data)
                transactions.end(commit=True)
        except KafkaError as error:
            if isinstance(error, FencedError) or error.code in _FENCED:
                raise FencedError(
                    f"another query, or a newer driver of this one, writes with transactional.id.prefix="
                    f"{self._options.prefix}: {error}",
                    error.code,
                ) from error
            raise

    def carry_out(self, decision: Decision) -> list[int]:
        """Commit the decided transactions; the tasks whose transaction was aborted meanwhile.

        May be repeated. Where a coordinator does not tell, the log does.
        """
        tasks = [task for task in decision.tasks if task.transactional_id]
        with ThreadPoolExecutor(_TOGETHER_MAX) as pool:
            return [
                task.task for task, done in zip(tasks, pool.map(self._commit, tasks), strict=True) if not done
            ]

    def expired(self, tasks: Sequence[Prepared]) -> list[int]:
        """The tasks whose transactions are not open any more, as far as brokers tell."""
        with closing(Cluster(self._settings)) as cluster:
            left = open_transactions(cluster, self._options.task_prefix)
        if left is None:
            return []
        return [task.task for task in tasks if task.transactional_id and task.transactional_id not in left]

    def abort(self, tasks: Sequence[Prepared]) -> None:
        """Abort open transactions of tasks, as far as that is possible: they end by their time-out else."""
        for task in tasks:
            if task.transactional_id:
                self._ended(task, commit=False)

    def end_open(self, decided: Decision | None) -> None:
        """Commit what is decided and open, and abort what else is open, so that no reader waits for it."""
        tasks = () if decided is None else decided.tasks
        with closing(Cluster(self._settings)) as cluster:
            left = open_transactions(cluster, self._options.task_prefix)
        if left is None:
            left = [task.transactional_id for task in tasks if task.transactional_id]
        ended = [
            task.transactional_id
            for task in tasks
            if task.transactional_id in left and self._ended(task, commit=True)
        ]
        fence(self._settings, [each for each in left if each not in ended])

    def lost(self, decided: Decision) -> list[int]:
        """The tasks whose rows are not committed, though it was decided: brokers had aborted them before."""
        return [task.task for task in decided.tasks if task.transactional_id and not self._is_committed(task)]

    def _transactions(self) -> Transactions:
        return Transactions(self._settings, self._options.decision_id, _DECISION_TIMEOUT_S)

    def _last_between(self, reader: SpanReader, begin: int, end: int) -> Decision | None:
        found: bytes | None = None
        for batch in reader.read(self._partition, begin, end):
            for record in decode_log_batch(batch, self._partition.partition):
                if record.key == self._key:
                    found = record.value
        return None if found is None else Decision.decode(found)

    def _write(self, cluster: Cluster, transactions: Transactions, data: memoryview) -> None:
        retries = Retries(self._settings)
        while True:
            result = produce_batches(
                cluster,
                self._options.producer,
                {self._partition: data},
                transactions.transactional_id,
                transactions.produce_version_max,
            )[self._partition]
            if isinstance(result, int):
                return
            retries.wait(result, COMPLETING if result.code == CONCURRENT_TRANSACTIONS else None)

    def _commit(self, task: Prepared) -> bool:
        """Whether the transaction is committed now."""
        return self._ended(task, commit=True) or self._is_committed(task)

    def _ended(self, task: Prepared, *, commit: bool) -> bool:
        """Whether the coordinator has ended it so, now or before."""
        transactions = Transactions(
            self._settings, task.transactional_id, self._options.transaction_timeout_s
        )
        retries = Retries(self._settings)
        with closing(transactions):
            while True:
                transactions.resume(task.producer, task.partitions, is_version_2=task.is_version_2)
                try:
                    transactions.end(commit=commit)
                except UnclearTransactionError as error:
                    if not _may_pass(error):
                        return False
                    retries.wait(error)
                except FencedError:
                    return False
                else:
                    return True

    def _is_committed(self, task: Prepared) -> bool:
        """Look for the marker behind the transaction's last batch. One that is being written is awaited.

        Where retention has deleted the batch it counts as lost: what is written again is not there twice.
        """
        if task.last_offset < 0:
            return False
        settings = ConsumerSettings(self._settings)
        partition = task.partitions[-1]
        retries = Retries(self._settings)
        while True:
            if require_offsets(settings, [partition], EARLIEST)[partition] > task.last_offset:
                return False
            with closing(SpanReader(settings)) as reader:
                for batch in reader.read(partition, task.last_offset, _END):
                    if batch.header.attributes & CONTROL and batch.header.producer_id == task.producer.id:
                        return not is_abort_marker(batch)
            retries.wait(RetriableError(f"{partition}: transaction {task.transactional_id} does not end"))


def _may_pass(error: SparkmirrorError) -> bool:
    """Whether the response was lost, and not an error of the coordinator."""
    return error.code == 0
