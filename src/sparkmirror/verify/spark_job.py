"""Compares ranges as one Spark job of one stage, and returns outcomes as soon as a task ends."""

import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.quantities import counted
from sparkmirror.spark.classic_host import ClassicHost
from sparkmirror.spark.host import SparkJob
from sparkmirror.spark.session import Session
from sparkmirror.verify.range_comparison import RangeOutcome, RangePlan, outcome_of

SETTINGS = {"spark.task.maxFailures": "4"}
"""Spark settings of the session: a comparison that fails by a bug must end; copy jobs retry for ever."""

_TAG = "verify"
_SCHEMA = "nothing int"
_ARROW = pa.schema([("nothing", pa.int32())])
_TASKS_PER_SLOT = 16
"""Outcomes arrive when a task ends: many tasks deliver them early, few cost less time to start."""
_POLL_S = 0.2


def verification_master(slots: int) -> str:
    return f"local[{slots}]"


def verify_ranges(
    session: Session, plans: Sequence[RangePlan], on_outcome: Callable[[RangeOutcome], None]
) -> None:
    """Call `on_outcome` once per range, from this thread, in no certain order.

    Raises SparkmirrorError when Spark can't do it, or brings passwords along unprotected. KeyboardInterrupt
    ends the job.
    """
    if not plans:
        return
    session.require_private(frozenset().union(*(plan.sides.connections for plan in plans)))
    arrived: queue.SimpleQueue[RangeOutcome] = queue.SimpleQueue()
    left = set(range(len(plans)))
    job = _submit(session, plans, arrived.put)
    try:
        while left:
            has_ended = job.done()
            try:
                outcome = arrived.get(timeout=_POLL_S)
            except queue.Empty:
                if has_ended:
                    break
                continue
            if outcome.number in left:  # a retried task delivers its outcomes again
                left.remove(outcome.number)
                on_outcome(outcome)
    except BaseException:
        session.host.cancel(_TAG)
        raise
    error = job.exception()
    if left:
        text = "it ended early" if error is None else (str(error).strip() or repr(error)).splitlines()[0]
        raise SparkmirrorError(f"the Spark job failed: {text}; {session.log_hint}")


def _submit(
    session: Session, plans: Sequence[RangePlan], on_outcome: Callable[[RangeOutcome], None]
) -> "Future[Sequence[Any]]":
    host = session.host
    assert isinstance(host, ClassicHost), "a comparison has a JVM of its own"
    outcomes = host.accumulator([], _Outcomes(on_outcome))
    shares = _shares(plans, session.slots * _TASKS_PER_SLOT)
    description = f"compare {counted(len(plans), 'range')} of partitions"
    modules = frozenset().union(*(plan.sides.modules for plan in plans))
    task = _compare_shares(shares, outcomes)
    return host.submit(SparkJob(task, len(shares), _SCHEMA, _TAG, description, modules=modules))


def _shares(plans: Sequence[RangePlan], count: int) -> list[list[tuple[int, RangePlan]]]:
    """The ranges assigned to tasks, the biggest first."""
    by_size = sorted(enumerate(plans), key=lambda numbered: -numbered[1].size)
    count = min(count, len(plans))
    return [by_size[task::count] for task in range(count)]


def _compare_shares(
    shares: Sequence[Sequence[tuple[int, RangePlan]]], outcomes: Any
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over `spark.range(n)`: row i compares share i."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks = [task for batch in batches for task in batch.column(0).to_pylist()]
        for number, plan in (numbered for task in tasks for numbered in shares[task]):
            outcomes.add([outcome_of(number, plan)])
            # A heartbeat: once Spark takes it no more, the worker ends. `pa.array` would import pandas.
            yield pa.RecordBatch.from_arrays([pa.nulls(0, pa.int32())], schema=_ARROW)

    return run


class _Outcomes(AccumulatorParam[list[RangeOutcome]]):
    """Collects outcomes in a task; on the driver passes them on and keeps none."""

    def __init__(self, on_outcome: Callable[[RangeOutcome], None] | None = None) -> None:
        self._on_outcome = on_outcome

    def __reduce__(self) -> tuple[Any, ...]:
        return _Outcomes, ()

    def zero(self, value: list[RangeOutcome]) -> list[RangeOutcome]:  # noqa: ARG002 - Spark's signature
        return []

    def addInPlace(self, value1: list[RangeOutcome], value2: list[RangeOutcome]) -> list[RangeOutcome]:  # noqa: N802
        if self._on_outcome is None:
            return value1 + value2
        for outcome in value2:
            self._on_outcome(outcome)
        return value1
