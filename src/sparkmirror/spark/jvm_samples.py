"""Samples the driver's JVM for metrics, on a thread of its own: a JVM that hangs delays no request."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JError

from sparkmirror.metrics.readings import GcReading, JvmReading, MemoryReading

_log: Final = logging.getLogger(__name__)
_FRESH_S: Final = 2.0
_KEPT_S: Final = 60.0
"""An older sample says nothing of a JVM that does not answer now."""


class JvmSamples:
    """`get` is safe in any thread and never blocks: it returns the last sample, and has another taken."""

    def __init__(
        self, take: Callable[[], JvmReading | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`take` blocks, and returns None while there is no JVM."""
        self._take = take
        self._clock = clock
        self._lock = threading.Lock()
        self._is_sampling = False
        self._sample: JvmReading | None = None
        self._sampled_at = float("-inf")

    def get(self) -> JvmReading | None:
        """Return the last sample; None before the first one, and where it is old."""
        with self._lock:
            age_s = self._clock() - self._sampled_at
            if age_s >= _FRESH_S and not self._is_sampling:
                self._is_sampling = True
                threading.Thread(target=self._run, name="sample the JVM", daemon=True).start()
            return self._sample if age_s < _KEPT_S else None

    def _run(self) -> None:
        sample = None
        try:
            sample = self._take()
        except (Py4JError, OSError) as error:
            _log.debug("the JVM can't be sampled: %s", error)
        finally:
            with self._lock:
                self._is_sampling = False
                if sample is not None:
                    self._sample, self._sampled_at = sample, self._clock()


def sample_of(jvm: Any) -> JvmReading:
    """`jvm` is py4j's view of it. Raises Py4JError."""
    beans = jvm.java.lang.management.ManagementFactory
    memory = beans.getMemoryMXBean()
    return JvmReading(
        {"heap": _memory(memory.getHeapMemoryUsage()), "nonheap": _memory(memory.getNonHeapMemoryUsage())},
        {
            str(each.getName()): GcReading(each.getCollectionCount(), each.getCollectionTime() / 1000)
            for each in beans.getGarbageCollectorMXBeans()
        },
        int(beans.getThreadMXBean().getThreadCount()),
    )


def _memory(usage: Any) -> MemoryReading:
    return MemoryReading(usage.getUsed(), usage.getCommitted(), usage.getMax())
