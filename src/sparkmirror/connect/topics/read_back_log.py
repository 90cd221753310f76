"""Shares a topic of one partition between threads that write and read it at the same time.

A writer waits until any thread has read its record back, and so sees it in its order among other writers'
records.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import CorruptBatchError, KafkaError, RetriableError
from sparkmirror.kafka.data.topic_log import TopicTail, TopicWriter
from sparkmirror.kafka.retries import Retries

_READ_SLICE_S = 1.0
_CLOSE_TIMEOUT_S = 5.0

Take = Callable[[Sequence[LogRecord]], None]


class ReadBackLog:
    """Thread-safe; calls `take` with the records in their order, from one thread at a time."""

    def __init__(self, settings: ConnectionSettings, topic: str, take: Take) -> None:
        self._settings = settings
        self._topic = topic
        self._take = take
        self._tail = TopicTail(settings, topic)
        self._writer = TopicWriter(settings)
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._is_read = False
        """Whether a thread is reading; the rest is guarded by `_changed`."""
        self._waiting_for_end = 0
        """Threads that wait for their turn to read; `poll`, which is called repeatedly, yields to them."""
        self._next_offset = 0
        """The first offset that was not taken yet."""
        self._has_news = False
        """Whether records were taken since the last `poll`."""
        self._broken: KafkaError | None = None
        """Set for good by a batch that can't be read: its records are lost to this reader."""

    def read_to_end(self, timeout_s: float) -> None:
        """Take all records up to the present end. Raises KafkaError; RetriableError after the timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._waiting_for_end += 1
            self._changed.wait_for(lambda: not self._is_read, timeout_s)
            self._waiting_for_end -= 1
            if self._is_read:
                raise RetriableError(f"read {self._topic}: its end was not reached in time")
            self._is_read = True
        with self._reading():
            for record in self._tail.read_to_end(deadline - time.monotonic()):
                self._taken([record])

    def poll(self, timeout_s: float) -> bool:
        """Return whether records were taken since the last call; waits for some up to the timeout.

        Raises KafkaError.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._changed.wait_for(lambda: self._has_news or self._is_free, timeout_s)
            reads = not self._has_news and self._is_free
            self._is_read |= reads
        if reads:
            self._read(max(0.0, deadline - time.monotonic()))
        with self._changed:
            had_news, self._has_news = self._has_news, False
        return had_news

    def write(self, records: Iterable[LogRecord], timeout_s: float) -> None:
        """Return when the records are acknowledged and taken. Raises KafkaError."""
        deadline = time.monotonic() + timeout_s
        if not self._writing.acquire(timeout=timeout_s):
            raise RetriableError(f"write to {self._topic}: another writer did not finish in time")
        try:
            offsets = self._writer.write(
                self._topic, records, timeout_s=max(0.001, deadline - time.monotonic())
            )
        finally:
            self._writing.release()
        self._await(offsets[-1], deadline)

    def close(self) -> None:
        """Call it after other threads have ended; one that still reads is waited for shortly."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_read, _CLOSE_TIMEOUT_S)
        self._tail.close()
        self._writer.close()

    @property
    def _is_free(self) -> bool:
        return not self._is_read and not self._waiting_for_end

    def _await(self, offset: int, deadline: float) -> None:
        """Return when another thread, or this one, has taken the record at the offset."""
        retries = Retries(self._settings, deadline)
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._next_offset > offset or not self._is_read, deadline - time.monotonic()
                )
                if self._next_offset > offset:
                    return
                if time.monotonic() > deadline:
                    raise RetriableError(f"{self._topic}: offset {offset} was not read back in time")
                self._is_read = True
            try:
                self._read(min(_READ_SLICE_S, retries.left_s))
            except KafkaError as error:
                retries.wait(error)

    def _read(self, timeout_s: float) -> None:
        """Called by the thread that has set `_is_read`."""
        with self._reading():
            self._taken(self._tail.poll(timeout_s))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            if self._broken is not None:
                raise self._broken
            yield
        except KafkaError as error:
            if isinstance(error.__cause__, CorruptBatchError):
                self._broken = error
            raise
        finally:
            with self._changed:
                self._is_read = False
                self._changed.notify_all()

    def _taken(self, records: Sequence[LogRecord]) -> None:
        if not records:
            return
        self._take(records)
        with self._changed:
            self._next_offset = records[-1].offset + 1
            self._has_news = True


OpenReadBackLog = Callable[[ConnectionSettings, str, Take], ReadBackLog]
