"""A comparison that is asked for: one at a time, with its progress, its result, and its errors."""

import threading
from collections.abc import Callable

import pytest

from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import VerifyLook
from sparkmirror.mirror.verifying import Verifying
from sparkmirror.verify.child_process import ComparisonProcess
from sparkmirror.verify.range_comparison import RangeOutcome
from sparkmirror.verify.range_planning import Offsets
from sparkmirror.verify.rules_and_result import Comparison, Difference
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict
from sparkmirror.verify.verification_run import ProgressDisplay
from tests.support.waiting import await_value


def partition(number: int, comparison: Comparison) -> PartitionVerdict:
    places = TopicPartition("orders", number), TopicPartition("a.orders", number)
    return PartitionVerdict(*places, comparison, upto=Offsets(10, 10))


EQUAL = partition(0, Comparison(equal=10))
DIFFERENT = partition(1, Comparison(9, 0, 0, {"missing": 1}, (Difference("missing", 3, None, "key 'k'"),)))


class Bench:
    """A comparison that ends when the test lets it."""

    def __init__(self, verdict: Callable[[], FlowVerdict]) -> None:
        self.verdict = verdict
        self.may_end = threading.Event()
        self.kept: list[FlowVerdict] = []
        self.keep_error: SparkmirrorError | None = None
        self.now = 100.0
        self.verifying = Verifying(
            None,  # type: ignore[arg-type] # both are read by what is replaced only
            None,  # type: ignore[arg-type]
            verify=self._verify,
            keep_result=self._keep,
            clock=lambda: self.now,
        )

    def ended(self) -> VerifyLook:
        self.now = 160.0
        self.may_end.set()
        await_value(self._has_ended, 30.0, lambda: str(self.verifying.look()))
        look = self.verifying.look()
        assert look is not None
        return look

    def _has_ended(self) -> bool:
        look = self.verifying.look()
        return look is not None and look.ended_at is not None

    def _verify(self, told: ProgressDisplay) -> FlowVerdict:
        with told.updates() as update:
            update("1 of 2 ranges")
        assert self.may_end.wait(30)
        return self.verdict()

    def _keep(self, verdict: FlowVerdict, at: float) -> None:
        assert at == 160.0
        self.kept.append(verdict)
        if self.keep_error is not None:
            raise self.keep_error


def test_it_tells_its_progress_and_then_its_result() -> None:
    bench = Bench(lambda: FlowVerdict("a->b", [EQUAL, DIFFERENT]))
    assert bench.verifying.look() is None
    assert bench.verifying.start()
    assert not bench.verifying.start()
    told = VerifyLook(100.0, progress="1 of 2 ranges")
    await_value(lambda: bench.verifying.look() == told, 30.0, lambda: str(bench.verifying.look()))
    look = bench.ended()
    assert (look.began_at, look.ended_at, look.is_equal) == (100.0, 160.0, False)
    assert look.progress == "1 of 2 partitions differ, in 1 place"
    assert [(row.source.partition, row.state, row.differences) for row in look.rows] == [
        (1, "different", 1),
        (0, "equal", 0),
    ]
    assert "missing: source offset 3" in look.rows[0].problems[0]
    assert len(bench.kept) == 1
    assert bench.verifying.start()


@pytest.mark.parametrize("error", [DisconnectedError("a: no broker answers"), ZeroDivisionError("a bug")])
def test_an_error_ends_it(error: Exception) -> None:
    def failing() -> FlowVerdict:
        raise error

    bench = Bench(failing)
    bench.verifying.start()
    look = bench.ended()
    assert (look.error or "").endswith(str(error) if isinstance(error, SparkmirrorError) else repr(error))
    assert (look.rows, bench.kept) == ((), [])


def test_a_result_that_is_not_kept_is_shown_all_the_same() -> None:
    bench = Bench(lambda: FlowVerdict("a->b", [EQUAL]))
    bench.keep_error = DisconnectedError("no such topic")
    bench.verifying.start()
    look = bench.ended()
    assert (look.is_equal, look.error) == (True, None)


def test_a_process_that_was_stopped_compares_nothing() -> None:
    beside, outcomes = ComparisonProcess(), list[RangeOutcome]()
    beside.compare([], outcomes.append)
    beside.stop()
    with pytest.raises(SparkmirrorError, match="it was stopped"):
        beside.compare([object()], outcomes.append)  # type: ignore[list-item]
    assert outcomes == []
