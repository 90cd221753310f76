"""Samples of the JVM: the last one at once, the next by a thread, none that is old."""

import threading

from py4j.protocol import Py4JNetworkError

from sparkmirror.metrics.readings import JvmReading
from sparkmirror.spark.jvm_samples import JvmSamples
from tests.support.waiting import await_value


class Bench:
    """A JVM with a number of threads, or an error in its place."""

    def __init__(self) -> None:
        self.now = 0.0
        self.threads: int | Exception | None = 7
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = 0
        self.samples = JvmSamples(self._take, lambda: self.now)

    def _take(self) -> JvmReading | None:
        self.asked += 1
        assert self.may_answer.wait(30)
        if isinstance(self.threads, Exception):
            raise self.threads
        return None if self.threads is None else JvmReading({}, {}, self.threads)

    def await_threads(self, count: int) -> None:
        def are_there() -> bool:
            return self.samples.get() == JvmReading({}, {}, count)

        await_value(are_there, 30.0, lambda: str(self.samples.get()))


def test_the_last_sample_is_returned_and_another_one_taken() -> None:
    bench = Bench()
    assert bench.samples.get() is None
    bench.await_threads(7)
    before, bench.threads = bench.asked, 8
    bench.samples.get()
    assert bench.asked == before, "a sample serves for two seconds"
    bench.now = 2.0
    bench.await_threads(8)


def test_a_jvm_that_hangs_holds_nobody_up_and_is_unknown_in_the_end() -> None:
    bench = Bench()
    bench.await_threads(7)
    bench.may_answer.clear()
    bench.now = 59.0
    assert bench.samples.get() is not None
    bench.now = 61.0
    asked = bench.asked
    assert bench.samples.get() is None
    assert bench.asked <= asked + 1, "one thread waits for it"
    bench.may_answer.set()


def test_without_a_jvm_nothing_is_known() -> None:
    for found in (None, Py4JNetworkError("it ended"), ConnectionRefusedError()):
        bench = Bench()
        bench.threads = found
        assert bench.samples.get() is None
        # Asked twice: the first one has ended.
        await_value(lambda of=bench: of.samples.get() is None and of.asked > 1, 30.0, lambda: "not asked")  # type: ignore[misc]
