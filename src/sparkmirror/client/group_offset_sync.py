"""Commits a group's checkpoints as its offsets on the target, as the tool MM2GroupOffsetSync did.

For mirrors without `sync.group.offsets.enabled`. Connects to the target cluster only.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum

from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.config.client_layers import mirror_client
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import DisconnectedError, KafkaError
from sparkmirror.domain.ids import Alias, GroupId, TopicPartition
from sparkmirror.kafka.groups.consumer_groups import Groups, offsets_at
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.offsets.checkpoints import CheckpointBook, OfGroup, offsets_to_write
from sparkmirror.storage.checkpoint_topic import read_checkpoints


class Outcome(StrEnum):
    WRITTEN = "written"
    """Written, or in a dry run to be written."""
    NOTHING_NEW = "nothing new"
    NO_CHECKPOINT = "no checkpoint"
    HAS_MEMBERS = "has members"
    NO_CONSUMER_GROUP = "no consumer group"
    REFUSED = "refused"
    """Some offsets were refused, or all."""


@dataclass(frozen=True, slots=True)
class SyncPass:
    """The result of one pass. `offsets` are those written, or to be written in a dry run."""

    outcome: Outcome
    checkpoints: OfGroup = field(default_factory=dict)
    offsets: OfGroup = field(default_factory=dict)
    refused: Mapping[TopicPartition, KafkaError] = field(default_factory=dict)

    @property
    def is_synced(self) -> bool:
        """Whether the group's offsets are at its checkpoints now, or ahead of them."""
        return self.outcome in (Outcome.WRITTEN, Outcome.NOTHING_NEW)


class GroupOffsetSync:
    """Syncs one group of one upstream cluster. Holds no connection between two passes.

    `properties` are those of `MirrorClient`. Raises ConfigError for unusable ones.
    """

    def __init__(self, properties: Mapping[str, str], source: Alias, group: GroupId) -> None:
        settings = Properties({"source.cluster.alias": source, **properties})
        with MirrorClient(settings) as client:
            self._topic = client.policy.checkpoints_topic(source)
        self._group = group
        self._admin = mirror_client(settings, "admin")
        self._consumer = mirror_client(settings, "consumer")

    def sync(self, *, dry_run: bool = False, timeout_s: float = 20.0) -> SyncPass:
        """Run one pass; transient errors are retried for `timeout_s`. Raises KafkaError.

        A group with members on the target is skipped, and no offset is ever moved backwards. A partition
        without an offset there gets one.
        """
        retries = Retries(self._admin, time.monotonic() + timeout_s)
        while True:
            try:
                with closing(Groups(self._admin)) as groups:
                    return self._sync(groups, dry_run, timeout_s)
            except DisconnectedError:
                raise
            except KafkaError as error:
                # A new cluster has no coordinator at first; waiting would not create a missing topic.
                if error.code == UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                retries.wait(error)

    def _sync(self, groups: Groups, dry_run: bool, timeout_s: float) -> SyncPass:
        listed = groups.listed().get(self._group)
        if listed is not None and not listed.commits_offsets:
            return SyncPass(Outcome.NO_CONSUMER_GROUP)
        if listed is not None and listed.is_active:
            return SyncPass(Outcome.HAS_MEMBERS)
        checkpoints = self._checkpoints(timeout_s)
        if not checkpoints:
            return SyncPass(Outcome.NO_CHECKPOINT)
        committed = groups.committed([self._group])[self._group]
        if isinstance(committed, KafkaError):
            raise committed
        there = {partition: offset for partition, (offset, _) in committed.items()}
        ahead = offsets_to_write(checkpoints, there)
        if dry_run or not ahead:
            return SyncPass(Outcome.WRITTEN if ahead else Outcome.NOTHING_NEW, checkpoints, ahead)
        return self._write(groups, checkpoints, ahead)

    def _write(self, groups: Groups, checkpoints: OfGroup, ahead: OfGroup) -> SyncPass:
        refused = groups.write(self._group, offsets_at(ahead))
        written = {partition: each for partition, each in ahead.items() if partition not in refused}
        return SyncPass(Outcome.REFUSED if refused else Outcome.WRITTEN, checkpoints, written, refused)

    def _checkpoints(self, timeout_s: float) -> OfGroup:
        known = read_checkpoints(self._consumer, self._topic, deadline_s=timeout_s)
        return CheckpointBook(known).of_group(self._group)
