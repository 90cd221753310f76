"""Looks at a flow's consumer groups on both clusters: where they are, and where they would continue."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Flow, GroupId
from sparkmirror.domain.lag_groups import shows_lag
from sparkmirror.groups.flow_histories import FlowHistories
from sparkmirror.groups.group_looks import GroupLooks
from sparkmirror.kafka.groups.consumer_groups import Groups, Offsets
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.metrics.looks import GroupsLook
from sparkmirror.offsets.checkpoints import CheckpointBook
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.periodic.jobs import Job, PeriodicThread
from sparkmirror.settings.checkpoint import is_followed, selected_groups
from sparkmirror.settings.configured import ConfiguredCheckpoint
from sparkmirror.storage.checkpoint_topic import CheckpointsReader

_INTERVAL_S: Final = 30.0
_READ_TIMEOUT_S: Final = 60.0


class GroupWatch:
    """`thread` looks; everything else is safe in any thread."""

    def __init__(self, flow: Flow, connector: ConfiguredCheckpoint) -> None:
        self._flow = flow
        self._connector = connector
        settings = connector.settings
        self._source = Groups(connector.source_admin)
        self._target = Groups(connector.target_admin)
        self._histories = FlowHistories(connector)
        self._checkpoints = CheckpointsReader(connector.checkpoints_consumer, settings.checkpoints_topic)
        self._looks = GroupLooks(settings)
        self._known: Collection[GroupId] = ()
        self._error: str | None = None
        self.thread = PeriodicThread("watch of groups", flow_log(__name__, flow), self._jobs, self.close)

    def look(self) -> GroupsLook:
        of = GroupsLook(self._flow, self._connector.name, "checkpoint")
        look = self._looks.look(of, time.monotonic())
        unread = self.thread.failing or self._error
        return replace(look, interval_s=_INTERVAL_S, reads_target=True, unread=unread)

    def look_once(self) -> None:
        """Read without the thread; `look` has the error."""
        self._error = None
        try:
            self.read()
        except KafkaError as error:
            self._error = str(error)

    def _jobs(self) -> Iterable[Job]:
        return (Job("look at the groups", _INTERVAL_S, self.read),)

    def close(self) -> None:
        for each in (self._source, self._target, self._histories, self._checkpoints):
            each.close()

    def read(self) -> None:
        """Read both clusters; `thread` calls it. Raises KafkaError."""
        found, errors = _parted(self._found())
        self._known = [*found, *errors]
        book = CheckpointBook(unless_missing(lambda: self._checkpoints.catch_up(_READ_TIMEOUT_S), ()))
        self._looks.note_translation(found, self._histories.read(), book, time.monotonic(), errors)
        listed = self._target.listing().groups
        committed, errors = _parted(self._target.committed(found))
        there = {
            group: {partition: offset for partition, (offset, _) in offsets.items()}
            for group, offsets in committed.items()
        }
        active = frozenset(group for group in found if group in listed and listed[group].is_active)
        self._looks.note_target(there, active, time.monotonic(), errors)

    def _found(self) -> Mapping[GroupId, Offsets | KafkaError]:
        """Read what the groups that the flow follows have committed on the source, or why that fails.

        Brokers list the groups that they coordinate: one that nobody lists may have no coordinator now.
        """
        settings, listed = self._connector.settings, self._source.listing().groups
        wanted = selected_groups(
            settings, [group for group, of in listed.items() if of.commits_offsets]
        ).groups
        unlisted = [group for group in self._known if group not in listed]
        return {
            group: offsets
            for group, offsets in sorted(self._source.committed([*wanted, *unlisted]).items())
            if isinstance(offsets, KafkaError)
            or (
                any(is_followed(settings, topic) for topic, _ in offsets)
                and not shows_lag([metadata for _, metadata in offsets.values()])
            )
        }


def _parted(
    found: Mapping[GroupId, Offsets | KafkaError],
) -> tuple[dict[GroupId, Offsets], dict[GroupId, KafkaError]]:
    """Groups whose offsets are known, and the errors of the others."""
    errors = {group: it for group, it in found.items() if isinstance(it, KafkaError)}
    return {group: it for group, it in found.items() if not isinstance(it, KafkaError)}, errors
