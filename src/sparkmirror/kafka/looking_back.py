"""Looks back, in the background, at partitions of which it's unclear what was written: see `look_back`."""

import asyncio
import random
from typing import Protocol

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.look_back import LookBack, Written, written_batches
from sparkmirror.kafka.partition_queue import PartitionQueue, Route


class LookingBackOwner(Protocol):
    """Who writes. All calls come on the loop's thread."""

    def looked_back(self, lane: PartitionQueue, written: list[Written], error: SparkmirrorError) -> None:
        """What stands in the log of what the lane had sent; the error is the one that made it unclear."""

    def look_back_failed(self, partition: TopicPartition, error: SparkmirrorError) -> None:
        """It's tried again with back-off."""


class LookingBack:
    """By connection, so that a broker that is slow to answer keeps nobody else's partitions waiting."""

    def __init__(
        self, settings: ConnectionSettings, loop: asyncio.AbstractEventLoop, owner: LookingBackOwner
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._owner = owner
        self._backoff = Backoff(settings.retry_backoff_s, settings.retry_backoff_max_s)
        self._unclear: dict[Route | None, dict[PartitionQueue, SparkmirrorError]] = {}
        self._tasks: dict[Route | None, asyncio.Task[None]] = {}

    def begin(self, lane: PartitionQueue, error: SparkmirrorError) -> None:
        """Nothing of the lane may be in flight, nor be sent before it is told."""
        self._unclear.setdefault(lane.route, {})[lane] = error
        if lane.route not in self._tasks:
            self._tasks[lane.route] = self._loop.create_task(self._look(lane.route))

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _look(self, route: Route | None) -> None:
        failures = 0
        unclear = self._unclear[route]
        while unclear:
            lanes = {lane.partition: lane for lane in unclear}
            wanted = {
                partition: LookBack(lane.producer, lane.next_offset)
                for partition, lane in lanes.items()
                if lane.producer is not None
            }
            try:
                found = await self._loop.run_in_executor(None, written_batches, self._settings, wanted)
            except SparkmirrorError as error:
                found = dict.fromkeys(wanted, error)
            for partition, written in found.items():
                if isinstance(written, SparkmirrorError) and not isinstance(written, AuthorizationError):
                    self._owner.look_back_failed(partition, written)
                    continue
                lane = lanes[partition]
                # Who may not read must rely on what the broker remembers.
                there = [] if isinstance(written, SparkmirrorError) else written
                self._owner.looked_back(lane, there, unclear.pop(lane))
            failures += 1
            if unclear:
                await asyncio.sleep(self._backoff.delay_s(failures, random.random()))
        del self._tasks[route]
