"""The writers of batch and streaming queries: prepare in tasks, then decide and commit on the driver.

With a prefix each task attempt writes in a transaction of its own, which it leaves open. The driver writes
one decision with the transactions of all tasks, then commits them. Whatever was decided is carried out, at
the latest before the tasks of the next batch start.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from sparkmirror.dataframes.decision_record import Decision, Prepared
from sparkmirror.dataframes.decision_topic import Decider, Decisions
from sparkmirror.dataframes.digest import Digest
from sparkmirror.dataframes.schema import check_sink_schema
from sparkmirror.dataframes.task_writer import TaskWriter
from sparkmirror.dataframes.write_options import WriteOptions, write_options
from sparkmirror.domain.errors import ConfigError, KafkaError
from sparkmirror.kafka.transactions.transaction_runs import Transactions, new_producer_id

_BATCH_ID = "streaming.sql.batchId"
"""The local property in which Spark tells tasks the number of their micro-batch."""


@dataclass
class TaskMessage(WriterCommitMessage):
    """A task's message to the driver. `is_skipped`: its rows were committed before."""

    prepared: Prepared
    decider: Decider | None = None
    is_skipped: bool = False
    is_written: bool = True
    """Whether the transaction was begun now, and is not one of a former decision."""
    tasks_before: Sequence[int] | None = None
    """All tasks of the decision, where some of its rows must be written again."""


@dataclass
class Plan:
    """The driver's values from before tasks start, which get it pickled."""

    decider: Decider | None = None
    decided: Decision | None = None


def planned(options: WriteOptions) -> Plan:
    """Carry out the last decision, and end what attempts have left open. Raises KafkaError."""
    if options.prefix is None:
        return Plan()
    decisions = Decisions(options)
    decisions.ensure_topic()
    decider = decisions.take_over()
    decided = decisions.last()
    if decided is None:
        decisions.check_topic()
    decisions.end_open(decided)
    return Plan(decider, decided)


class Sink:
    """The part that both writers have in common. Tasks get it pickled."""

    def __init__(self, options: WriteOptions, plan: Plan) -> None:
        self._options = options
        self._plan = plan

    def prepare(
        self, rows: Iterator[pa.RecordBatch], batch: int | None, task: int, attempt: int
    ) -> TaskMessage:
        """Write the rows of a task in a transaction that stays open. Raises KafkaError and ConfigError."""
        decided = self._plan.decided
        if decided is None or decided.batch != batch:
            return TaskMessage(self._written(rows, task, attempt), self._plan.decider)
        lost = Decisions(self._options).lost(decided)
        if not lost:
            return TaskMessage(Prepared(task, 0, ""), self._plan.decider, is_skipped=True)
        again = self._written(rows, task, attempt) if task in lost else _digested(rows, task)
        before = decided.by_task.get(task)
        if before is None or (again.rows, again.digest) != (before.rows, before.digest):
            raise _other_rows(batch, f"task {task} has other rows than before")
        return TaskMessage(
            again if task in lost else before,
            self._plan.decider,
            is_written=task in lost,
            tasks_before=sorted(decided.by_task),
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Decide and commit. Raises FencedError and KafkaError: the batch is run again then."""
        sent = [message for message in messages if isinstance(message, TaskMessage)]
        if self._options.prefix is None or not sent or all(message.is_skipped for message in sent):
            return
        tasks, before = sorted(message.prepared.task for message in sent), sent[0].tasks_before
        if before is not None and before != tasks:
            raise _other_rows(batch, f"it has {len(tasks)} tasks and had {len(before)}")
        decider = sent[0].decider
        assert decider is not None
        decisions = Decisions(self._options)
        decision = Decision(batch, [message.prepared for message in sent])
        if expired := decisions.expired([message.prepared for message in sent if message.is_written]):
            raise self._aborted(batch, expired, "nothing is committed")
        decisions.decide(decider, decision)
        if aborted := decisions.carry_out(decision):
            raise self._aborted(batch, aborted, "a query writes their rows again when it restarts")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort undecided transactions. Spark calls it also where a commit has failed on its way."""
        sent = [message.prepared for message in messages if isinstance(message, TaskMessage)]
        if self._options.prefix is None or not sent:
            return
        decisions = Decisions(self._options)
        decided = decisions.last()
        kept = [] if decided is None else [(task.transactional_id, task.producer) for task in decided.tasks]
        decisions.abort([task for task in sent if (task.transactional_id, task.producer) not in kept])

    def _written(self, rows: Iterator[pa.RecordBatch], task: int, attempt: int) -> Prepared:
        """The transaction is begun by the first row: a task without rows has none."""
        digest = Digest()
        filled = (records for records in rows if records.num_rows)
        first = next(filled, None)
        if first is None:
            return Prepared(task, 0, str(digest))
        settings = self._options.producer.connection
        with ExitStack() as opened:
            transactions: Transactions | None = None
            if self._options.prefix is None:
                producer = new_producer_id(settings)
            else:
                transaction_id = self._options.task_id(task, attempt)
                transactions = Transactions(settings, transaction_id, self._options.transaction_timeout_s)
                opened.enter_context(closing(transactions))
                producer = transactions.init()
            writer = TaskWriter(self._options, producer, transactions, task)
            opened.enter_context(closing(writer))
            for records in chain([first], filled):
                writer.write(records)
                if transactions is not None:
                    digest.add(records)
            if transactions is None:
                return Prepared(task, digest.rows, str(digest))
            return Prepared(
                task,
                digest.rows,
                str(digest),
                transactions.transactional_id,
                producer,
                transactions.is_version_2,
                writer.partitions,
                writer.last_offset,
            )

    def _aborted(self, batch: int, tasks: Sequence[int], what: str) -> KafkaError:
        return KafkaError(
            f"batch {batch}: the transactions of tasks {', '.join(map(str, tasks))} were aborted, by the "
            "broker after kafka.transaction.timeout.ms, or by another query with transactional.id.prefix="
            f"{self._options.prefix}; {what}"
        )


def _digested(rows: Iterator[pa.RecordBatch], task: int) -> Prepared:
    digest = Digest()
    for records in rows:
        digest.add(records)
    return Prepared(task, digest.rows, str(digest))


def _other_rows(batch: int | None, what: str) -> KafkaError:
    return KafkaError(
        f"batch {batch} can't be completed, because a part of its rows is committed and {what}: restore the "
        "number of partitions and the settings with which the query ran first"
    )


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes a micro-batch. Spark makes one for its plan, and another for its commit."""

    def __init__(self, options: WriteOptions, plan: Plan) -> None:
        self._sink = Sink(options, plan)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context: Any = TaskContext.get()
        batch = context.getLocalProperty(_BATCH_ID)
        if batch is None:
            raise KafkaError(f"Spark does not tell the number of the micro-batch ({_BATCH_ID})")
        return self._sink.prepare(iterator, int(batch), context.partitionId(), context.attemptNumber())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._sink.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        self._sink.abort(messages)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions, plan: Plan) -> None:
        self._sink = Sink(options, plan)
        self._name = time.time_ns()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context: Any = TaskContext.get()
        return self._sink.prepare(iterator, None, context.partitionId(), context.attemptNumber())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit(messages, self._name)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.abort(messages)


def batch_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> BatchWriter:
    """Raises ConfigError and KafkaError."""
    parsed = _checked(options, schema)
    if overwrite:
        raise ConfigError("mode", "overwrite", "a topic can only be appended to")
    return BatchWriter(parsed, planned(parsed))


def stream_writer(options: Mapping[str, str], schema: StructType, *, plans: bool) -> StreamWriter:
    """`plans` says that tasks are about to start: the writer only commits else. Raises as `batch_writer`."""
    parsed = _checked(options, schema)
    return StreamWriter(parsed, planned(parsed) if plans else Plan())


def _checked(options: Mapping[str, str], schema: StructType) -> WriteOptions:
    parsed = write_options(options)
    check_sink_schema(schema, has_topic=parsed.topic is not None)
    return parsed
