"""Virtual time: events in order of their time, and threads that take turns with them.

Only one thread runs at any moment, so a run is the same each time. A call that blocks in `wait` lets the
others continue, and time passes only when nobody can run.
"""

import asyncio
import heapq
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class StuckError(Exception):
    """There is no event left, though a task waits."""


class AbandonedError(BaseException):
    """The process that made this call was killed."""


class Timer:
    """A call at a time; it may be cancelled."""

    __slots__ = ("args", "call", "when")

    def __init__(self, when: float, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.when = when
        self.call: Callable[..., object] | None = call
        self.args = args

    def cancel(self) -> None:
        self.call = None

    def run(self) -> None:
        call, self.call = self.call, None
        if call is not None:
            call(*self.args)


class VirtualTime:
    """`call_at` and `call_later` as an event loop has them, but time is what the events say."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._events: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self.steps = 0
        """The number of events that have happened."""
        self.turns: dict[int, _Turn] = {}
        """By thread: the calls that have begun and not ended."""

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, call: Callable[..., object], *args: Any) -> Timer:
        timer = Timer(when, call, args)
        heapq.heappush(self._events, (when, next(self._numbers), timer))
        return timer

    def call_later(self, delay_s: float, call: Callable[..., object], *args: Any) -> Timer:
        return self.call_at(self._now + delay_s, call, *args)

    def step(self, deadline: float | None = None) -> bool:
        """Run the next event, or let time pass until the deadline; False when that has come."""
        while self._events and self._events[0][2].call is None:
            heapq.heappop(self._events)
        if not self._events or (deadline is not None and self._events[0][0] > deadline):
            if deadline is None:
                raise StuckError("nothing will ever happen")
            self._now = max(self._now, deadline)
            return False
        when, _, timer = heapq.heappop(self._events)
        self._now = max(self._now, when)
        self.steps += 1
        timer.run()
        return True

    def run_until(self, holds: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Run events until that holds; False when time is over."""
        deadline = None if timeout_s is None else self._now + timeout_s
        while not holds():
            if not self.step(deadline):
                return holds()
        return True

    def wait(self, is_over: Callable[[], bool], timeout_s: float | None, *, in_loop: bool = False) -> bool:
        """Block the caller until it is over and `wake` was called, or the time-out; whether it is over."""
        turn = self.turns.get(threading.get_ident())
        assert in_loop or not _is_in_loop(), "blocked on an event loop's thread"
        if turn is None:
            return self.run_until(is_over, timeout_s)
        if not is_over():
            turn.pause(is_over, None if timeout_s is None else self._now + timeout_s)
        return is_over()

    def sleep(self, seconds: float) -> None:
        self.wait(lambda: False, max(0.0, seconds))

    def wake(self) -> None:
        """Something changed: those calls continue whose wait is over."""
        for turn in list(self.turns.values()):
            turn.wake()

    def executor(self) -> "TurnExecutor":
        return TurnExecutor(self)


class VirtualLock:
    """A lock whose holder may wait: others that want it let it continue."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._time.wait(lambda: not self._is_held, None)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        self._time.wake()


class _Turn:
    """One call in a thread of its own. The thread that runs events waits while this one has its turn."""

    def __init__(self, time: VirtualTime, call: Callable[[], None]) -> None:
        self._time = time
        self._call = call
        self._ours, self._theirs = threading.Lock(), threading.Lock()
        self._ours.acquire()
        self._theirs.acquire()
        self._is_over: Callable[[], bool] | None = None
        self._timer: Timer | None = None
        self._is_abandoned = self._is_frozen = False
        self._on_thaw: Callable[[], None] | None = None
        """The work that was due while it was frozen."""

    def start(self) -> None:
        """Run the call until it blocks or ends. An event."""
        if self._is_frozen and not self._is_abandoned:
            self._on_thaw = self.start
        elif not self._is_abandoned:
            _THREADS.run(self._run)
            self._theirs.acquire()

    def pause(self, is_over: Callable[[], bool], deadline: float | None) -> None:
        """Let the others continue, until it is over and `wake` is called, or the deadline."""
        self._is_over = is_over
        self._timer = None if deadline is None else self._time.call_at(deadline, self._resume)
        self._theirs.release()
        self._ours.acquire()
        if self._is_abandoned:
            raise AbandonedError

    def wake(self) -> None:
        if self._is_over is not None and self._is_over():
            self._resume_soon()

    def abandon(self) -> None:
        """End the call where it waits."""
        self._is_abandoned = True
        if self._is_over is not None:
            self._resume_soon()
        self.thaw()

    def freeze(self) -> None:
        """Give it no turn until `thaw`, as a process that is stopped."""
        self._is_frozen = True

    def thaw(self) -> None:
        self._is_frozen = False
        due, self._on_thaw = self._on_thaw, None
        if due is not None:
            self._time.call_later(0.0, due)

    def _resume_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_over = None
        self._timer = self._time.call_later(0.0, self._resume)

    def _resume(self) -> None:
        """Continue the call until it blocks again or ends. An event."""
        self._is_over = None
        if self._is_frozen and not self._is_abandoned:
            self._on_thaw = self._resume
            return
        self._ours.release()
        self._theirs.acquire()

    def _run(self) -> None:
        ident = threading.get_ident()
        self._time.turns[ident] = self
        try:
            self._call()
        except AbandonedError:
            pass
        finally:
            del self._time.turns[ident]
            self._theirs.release()


class TurnExecutor(ThreadPoolExecutor):
    """Runs each call in a thread that takes turns with the events; as many at a time as are asked for."""

    def __init__(self, time: VirtualTime, calls_max: int = 1 << 30) -> None:
        super().__init__(1)  # an event loop accepts no other class; its own thread is never started
        self._time = time
        self._calls_max = calls_max
        self._waiting: list[_Turn] = []
        self._running: dict[_Turn, None] = {}
        self._is_closed = self._is_frozen = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        if self._is_closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()

        def call() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    _fulfil(future, lambda: fn(*args, **kwargs))
            finally:
                self._running.pop(turn, None)
                self._start_next()

        turn = _Turn(self._time, call)
        self._waiting.append(turn)
        self._start_next()
        return future

    def _start_next(self) -> None:
        while self._waiting and len(self._running) < self._calls_max:
            turn = self._waiting.pop(0)
            self._running[turn] = None
            if self._is_frozen:
                turn.freeze()
            self._time.call_later(0.0, turn.start)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Let running calls end, and take no new ones."""
        self._is_closed = True
        if cancel_futures:
            self._waiting.clear()

    def freeze(self) -> None:
        """Stop what runs until `thaw`, as SIGSTOP stops a process."""
        self._is_frozen = True
        for turn in self._running:
            turn.freeze()

    def thaw(self) -> None:
        self._is_frozen = False
        for turn in list(self._running):
            turn.thaw()

    def abandon(self) -> None:
        """Kill what runs, as the end of a process does."""
        self._is_closed = True
        self._waiting.clear()
        for turn in list(self._running):
            turn.abandon()


def _fulfil(future: Future[T], call: Callable[[], T]) -> None:
    try:
        result = call()
    except AbandonedError:
        raise
    except BaseException as error:  # noqa: BLE001 - handed to the task that waits for it
        future.set_exception(error)
    else:
        future.set_result(result)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Threads:
    """Threads that are kept for the next call: making one takes longer than a call."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []

    def run(self, call: Callable[[], None]) -> None:
        thread = self._idle.pop() if self._idle else _Thread(self._idle)
        thread.run(call)


class _Thread:
    def __init__(self, idle: "list[_Thread]") -> None:
        self._idle = idle
        self._call: Callable[[], None] | None = None
        self._is_called = threading.Lock()
        self._is_called.acquire()
        threading.Thread(target=self._serve, daemon=True).start()

    def run(self, call: Callable[[], None]) -> None:
        self._call = call
        self._is_called.release()

    def _serve(self) -> None:
        while True:
            self._is_called.acquire()
            call, self._call = self._call, None
            assert call is not None
            call()
            self._idle.append(self)


_THREADS = _Threads()
