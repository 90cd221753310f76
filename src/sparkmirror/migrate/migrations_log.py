"""Writes the migrations topic on the target, and makes it for the first record."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Self

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.status.flow_access import FlowAccess

_CONFIGS: Final = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class MigrationsLog:
    """Compacted, one partition. Every method blocks and raises KafkaError."""

    flow: Flow
    target: ConnectionSettings
    plugins: AdminPlugins
    replication_factor: int

    @classmethod
    def of(cls, access: FlowAccess) -> Self:
        return cls(
            access.flow, access.target_admin, access.admin_plugins, access.positions_replication_factor
        )

    @property
    def topic(self) -> str:
        return StateTopic.MIGRATIONS.of(self.flow.source)

    def ensure(self) -> None:
        with closing(Admin(self.target)) as admin:
            if self.topic in admin.partition_counts():
                return
            writes = self.plugins.over(admin, self.flow.target)
            creation = TopicCreation(self.topic, 1, self.replication_factor, _CONFIGS)
            for error in writes.create_topics([creation]).values():
                if error is not None:
                    raise error

    def write(self, records: Sequence[LogRecord]) -> None:
        with closing(TopicWriter(self.target)) as writer:
            if records:
                writer.write(self.topic, records)
