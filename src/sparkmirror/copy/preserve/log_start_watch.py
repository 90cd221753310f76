"""Sees that no filler comes back: a broker that was killed may restore an earlier start of a log.

Brokers store where logs start only now and then. So the starts of targets whose offsets are preserved are
checked regularly, on each leader, and moved again where they went back.
"""

import logging
from collections.abc import Mapping
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.log_starts import move_log_starts
from sparkmirror.kafka.data.partition_offsets import EARLIEST, list_offsets

_log = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 5.0


class LogStartWatch:
    """`check` blocks, and runs once at a time; `begin` may be called meanwhile."""

    def __init__(self, target: ConnectionSettings) -> None:
        self._target = target
        self._starts: dict[TopicPartition, int] = {}
        """The starts of the logs that do not start at 0."""
        self._due_at = 0.0

    def begin(self, partition: TopicPartition, start: int) -> None:
        """The target partition's log starts there, or later."""
        if start > 0:
            self._starts[partition] = start

    def is_due(self, now: float) -> bool:
        """Asked once for each check."""
        if not self._starts or now < self._due_at:
            return False
        self._due_at = now + CHECK_INTERVAL_S
        return True

    def check(self) -> None:
        """Move starts that went back; what can't be moved yet is due again at once."""
        known = dict(self._starts)
        try:
            found = list_offsets(ConsumerSettings(self._target), known, EARLIEST)
            back = {at: start for at, start in known.items() if _is_before(found[at], start)}
            moved = move_log_starts(self._target, back)
        except SparkmirrorError as error:
            _log.info("starts of logs are not checked: %s", error)
            return
        self._note(back, found, moved)
        if any(isinstance(each, SparkmirrorError) for each in moved.values()):
            self._due_at = 0.0

    def _note(
        self,
        back: Mapping[TopicPartition, int],
        found: Mapping[TopicPartition, int | SparkmirrorError],
        moved: Mapping[TopicPartition, int | SparkmirrorError],
    ) -> None:
        for partition, start in back.items():
            _log.warning(
                "%s started at %s again, as after a crash of its broker, with filler before offset %d: %s",
                partition,
                found[partition],
                start,
                moved[partition] if isinstance(moved[partition], SparkmirrorError) else "deleted again",
            )
        for partition, seen in found.items():
            if isinstance(seen, int):  # retention moves it on
                self._starts[partition] = max(self._starts.get(partition, 0), seen)


def _is_before(found: int | SparkmirrorError, start: int) -> bool:
    return isinstance(found, int) and found < start
