"""sparkmirror's own plug-ins pass the suites for third-party plug-ins."""

from typing import ClassVar

from sparkmirror.plugins import (
    CustomMM2ReplicationPolicy,
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    ForwardingAdmin,
    IdentityReplicationPolicy,
)
from sparkmirror.testing import (
    ConfigPropertyFilterContract,
    ForwardingAdminContract,
    GroupFilterContract,
    ReplicationPolicyContract,
    TopicFilterContract,
)
from tests.support.example_plugins import ShortNames, Suffixed


class TestDefault(ReplicationPolicyContract):
    policy_class = DefaultReplicationPolicy


class TestDefaultWithUnderscores(ReplicationPolicyContract):
    policy_class = DefaultReplicationPolicy
    properties: ClassVar = {"replication.policy.separator": "__"}


class TestDefaultWithDotsInInternalTopics(ReplicationPolicyContract):
    policy_class = DefaultReplicationPolicy
    properties: ClassVar = {
        "replication.policy.separator": "_",
        "replication.policy.internal.topic.separator.enabled": "false",
    }


class TestIdentity(ReplicationPolicyContract):
    policy_class = IdentityReplicationPolicy
    names_source = False


class TestIdentityWithUnderscores(ReplicationPolicyContract):
    policy_class = IdentityReplicationPolicy
    properties: ClassVar = {"replication.policy.separator": "_"}
    names_source = False


class TestCustom(ReplicationPolicyContract):
    policy_class = CustomMM2ReplicationPolicy
    names_source = False
    names_upstream = False


class TestSuffixed(ReplicationPolicyContract):
    policy_class = Suffixed


class TestDefaultTopicFilter(TopicFilterContract):
    filter_class = DefaultTopicFilter
    wanted = ("orders", "my.internal")
    unwanted = ("__consumer_offsets", "mm2-offsets.us.internal", "orders.replica")


class TestTopicFilterWithLists(TopicFilterContract):
    filter_class = DefaultTopicFilter
    properties: ClassVar = {"topics": "orders.*, payments", "topics.exclude": ".*-test"}
    wanted = ("orders", "orders.v1", "payments")
    unwanted = ("payments.v1", "orders-test", "other")


class TestShortNames(TopicFilterContract):
    filter_class = ShortNames
    wanted = ("orders",)
    unwanted = ("orders.v1",)


class TestDefaultGroupFilter(GroupFilterContract):
    filter_class = DefaultGroupFilter
    wanted = ("billing",)
    unwanted = ("console-consumer-1", "connect-x", "__internal")


class TestDefaultConfigPropertyFilter(ConfigPropertyFilterContract):
    filter_class = DefaultConfigPropertyFilter
    replicated = ("cleanup.policy", "retention.ms")
    excluded = ("min.insync.replicas", "follower.replication.throttled.replicas")


class TestForwardingAdmin(ForwardingAdminContract):
    admin_class = ForwardingAdmin
