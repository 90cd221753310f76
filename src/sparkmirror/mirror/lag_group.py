"""Commits what a flow has copied as the offsets of a consumer group on its source (`lag.group.id`).

So kafka-consumer-groups.sh, and the tools that show the lag of groups, show the mirror's. Nobody reads with
that group, and checkpoints leave it out, by the metadata of its offsets. One that an application uses is left
alone.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Flow, GroupId, TopicPartition
from sparkmirror.domain.lag_groups import LAG_METADATA
from sparkmirror.groups.lag_group_use import CHOOSE_ANOTHER, used_by_others
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.settings.configured import ConfiguredSource
from sparkmirror.storage.progress import PartitionProgress

_INTERVAL_S: Final = 5.0
_REPEATED_EVERY_S: Final = 3600.0
"""Brokers forget offsets that nobody commits for a while, by default seven days."""


class LagGroup:
    """`thread` commits, every five seconds, the positions that have changed."""

    def __init__(
        self,
        flow: Flow,
        connector: ConfiguredSource,
        reports: Callable[[], Collection[PartitionProgress]],
    ) -> None:
        """`reports` returns the newest of each partition; it is called by `thread`."""
        self._group = GroupId(connector.settings.lag_group_id)
        self._reports = reports
        self._groups = Groups(connector.source_admin)
        self._committed: dict[TopicPartition, Committed] = {}
        self._all_since = time.monotonic()
        log = flow_log(__name__, flow, connector.name)
        self.thread = PeriodicThread("lag group", log, self._jobs, self._groups.close)

    def _jobs(self) -> Iterable[Job]:
        return (Job(f"commit to group {self._group}", _INTERVAL_S, self.commit, first_after_s=1.0),)

    def commit(self) -> None:
        """Called by `thread`. Raises KafkaError, one that names the missing right among others."""
        now = time.monotonic()
        if now - self._all_since > _REPEATED_EVERY_S:
            self._committed, self._all_since = {}, now
        positions = {
            report.source: Committed(report.position + 1, LAG_METADATA)
            for report in self._reports()
            if report.position is not None
        }
        news = {
            partition: position
            for partition, position in positions.items()
            if self._committed.get(partition) != position
        }
        if not news:
            return
        self._require_own()
        refused = self._groups.write(self._group, news)
        self._committed |= {partition: news[partition] for partition in news.keys() - refused.keys()}
        for error in refused.values():
            raise error

    def _require_own(self) -> None:
        """Check the group before each commit: an application's offsets are never overwritten."""
        use = used_by_others(self._groups, self._group, also_members=not self._committed)
        if use is not None:
            where = f"group {self._group} on {self._groups.cluster}"
            raise KafkaError(f"{where} {use}; nothing is committed for it: {CHOOSE_ANOTHER}")
