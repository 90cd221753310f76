"""Exports the public API for authors of plug-ins: interfaces, base classes and values.

A plug-in is a class. Policies and filters are called with the connector's properties (texts by name); an
admin is a subclass of `ForwardingAdmin`. docs/plugins.md shows each, `sparkmirror.testing` tests them.
"""

from sparkmirror.config.default_plugins import (
    CustomMM2ReplicationPolicy,
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
)
from sparkmirror.config.plugin_points import GroupFilterPlugin as GroupFilter
from sparkmirror.config.plugin_points import TopicFilterPlugin as TopicFilter
from sparkmirror.domain.accounts import (
    QuotaChange,
    QuotaEntity,
    SaltedCredential,
    ScramCredential,
    ScramMechanism,
)
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.errors import (
    AuthorizationError,
    ConfigError,
    KafkaError,
    RetriableError,
    TopicExistsError,
)
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, TopicCreation
from sparkmirror.policies.admin_writes import AclResults, AdminWrites, ForwardingAdmin, QuotaResults, Results
from sparkmirror.policies.config_filter import ConfigPropertyFilter
from sparkmirror.policies.replication import ReplicationPolicy

__all__ = [
    "AclBinding",
    "AclOperation",
    "AclPermission",
    "AclResults",
    "AdminWrites",
    "AlterConfigOp",
    "AlterConfigOpType",
    "AuthorizationError",
    "ConfigError",
    "ConfigPropertyFilter",
    "CustomMM2ReplicationPolicy",
    "DefaultConfigPropertyFilter",
    "DefaultGroupFilter",
    "DefaultReplicationPolicy",
    "DefaultTopicFilter",
    "ForwardingAdmin",
    "GroupFilter",
    "IdentityReplicationPolicy",
    "KafkaError",
    "PatternType",
    "QuotaChange",
    "QuotaEntity",
    "QuotaResults",
    "ReplicationPolicy",
    "ResourceType",
    "Results",
    "RetriableError",
    "SaltedCredential",
    "ScramCredential",
    "ScramMechanism",
    "TopicCreation",
    "TopicExistsError",
    "TopicFilter",
]
