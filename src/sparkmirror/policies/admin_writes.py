"""Defines the writes to a cluster beside its data: topics, configs, ACLs, quotas and users.

`AdminWrites` is the interface, `ForwardingAdmin` the base class of admin plug-ins (KIP-787). Bulk calls
return a result per item, so that one bad item never hides the others.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.domain.accounts import QuotaChange, QuotaEntity, SaltedCredential
from sparkmirror.domain.acls import AclBinding
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.topics import AlterConfigOp, TopicCreation

Results = Mapping[str, KafkaError | None]
"""Per topic: None when it worked."""

AclResults = Mapping[AclBinding, KafkaError | None]
"""Per binding: None when it worked."""

QuotaResults = Mapping[QuotaEntity, KafkaError | None]
"""Per entity: None when it worked."""


class AdminWrites(Protocol):
    """Writes to a cluster. Every method blocks, and raises KafkaError when the request as a whole failed."""

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results: ...

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to these total partition counts."""
        ...

    def delete_topics(self, topics: Mapping[str, bytes]) -> Results:
        """Names, and the id of the topic that is meant (KIP-516): another of that name stays.

        An id is empty where brokers have none.
        """
        ...

    def alter_configs(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        """Alter topic configs incrementally (KIP-339). Raises UnsupportedVersionError before Kafka 2.3."""
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


class ForwardingAdmin:
    """Forwards the writes for one cluster. Subclasses override the writes of their control plane.

    Calls come from one thread at a time. A KafkaError in the results is that item's alone, one that is raised
    is the whole request's; after a RetriableError a retry may succeed.
    """

    def __init__(self, properties: Mapping[str, str], delegate: AdminWrites, cluster: str) -> None:
        """`cluster` is the cluster's alias, `properties` are those that Java's plug-in gets.

        They are `bootstrap.servers`, security, and the keys below `admin.` and below `source.admin.` or
        `target.admin.`.
        """
        self.properties = properties
        self.delegate = delegate
        self.cluster = cluster

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        return self.delegate.create_topics(topics)

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        return self.delegate.grow_topics(counts)

    def delete_topics(self, topics: Mapping[str, bytes]) -> Results:
        return self.delegate.delete_topics(topics)

    def alter_configs(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        return self.delegate.alter_configs(changes)

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return self.delegate.create_acls(bindings)

    def delete_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return self.delegate.delete_acls(bindings)

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> QuotaResults:
        return self.delegate.alter_quotas(changes)

    def alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:
        return self.delegate.alter_users(credentials)


_: type[AdminWrites] = ForwardingAdmin  # whatever there is to write is forwarded
