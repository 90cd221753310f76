"""Suites that every kind of plug-in must pass.

A test subclasses one and sets the plug-in's class; each test creates it from properties, as a mirror does.
"""

from tests.support.plugin_suites.admins import AskedAdmin, ForwardingAdminContract
from tests.support.plugin_suites.filters import (
    ConfigPropertyFilterContract,
    GroupFilterContract,
    TopicFilterContract,
)
from tests.support.plugin_suites.policies import ReplicationPolicyContract

__all__ = [
    "AskedAdmin",
    "ConfigPropertyFilterContract",
    "ForwardingAdminContract",
    "GroupFilterContract",
    "ReplicationPolicyContract",
    "TopicFilterContract",
]
