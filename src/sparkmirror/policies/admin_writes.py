"""What is written to a cluster around its data: the values, and the shape of whoever writes them.

Bulk calls return a result per item, so that one bad item never hides the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.domain.acls import AclBinding
from sparkmirror.domain.errors import KafkaError
from sparkmirror.policies.accounts import QuotaChange, QuotaEntity, SaltedCredential
from sparkmirror.policies.config_filter import AlterConfigOp

Results = Mapping[str, KafkaError | None]
"""Per topic: None when it worked."""

AclResults = Mapping[AclBinding, KafkaError | None]
"""Per binding: None when it worked."""

QuotaResults = Mapping[QuotaEntity, KafkaError | None]
"""Per entity: None when it worked."""


@dataclass(frozen=True, slots=True)
class TopicCreation:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class AdminWrites(Protocol):
    """Every method blocks and raises KafkaError when the request as a whole failed."""

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results: ...

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to these total partition counts."""
        ...

    def delete_topics(self, topics: Mapping[str, bytes]) -> Results:
        """Names, and the id of the topic that is meant (KIP-516): another of that name stays.

        An id is empty where brokers tell none.
        """
        ...

    def alter_configs(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        """Of topics, incrementally (KIP-339). Raises UnsupportedVersionError for brokers before 2.3."""
        ...

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults: ...

    def delete_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        """Exactly these; one that is not there is a success."""
        ...

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> QuotaResults:
        """Set client quotas (KIP-546). Raises UnsupportedVersionError for brokers before 2.6."""
        ...

    def alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:
        """Create or replace SCRAM credentials (KIP-554); results are by user.

        Raises UnsupportedVersionError for brokers before 2.7.
        """
        ...
