"""The admin plug-in's base class (KIP-787): forwards what is written around the data to the cluster."""

from collections.abc import Mapping, Sequence

from sparkmirror.domain.acls import AclBinding
from sparkmirror.policies.accounts import QuotaChange, SaltedCredential
from sparkmirror.policies.admin_writes import AclResults, AdminWrites, QuotaResults, Results, TopicCreation
from sparkmirror.policies.config_filter import AlterConfigOp


class ForwardingAdmin:
    """For one cluster. Subclasses override what their control plane does instead; the rest is forwarded.

    Calls come from one thread at a time. A KafkaError in the results is that item's alone, one that is raised
    is the whole request's; RetriableError says that trying again soon may help.
    """

    def __init__(self, properties: Mapping[str, str], delegate: AdminWrites, cluster: str) -> None:
        """Of the cluster of that alias. `properties` are the admin client's, as Java's plug-in gets them.

        That is `bootstrap.servers`, security, and whatever stands below `admin.` and below `source.admin.`
        or `target.admin.`.
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
