"""Test suites for plug-ins, to be run by their authors.

A suite is a class of tests for pytest, which sparkmirror doesn't bring: subclass it under a name that starts
with `Test`, and set the plug-in class. Every test creates the plug-in from properties and calls it, both as a
mirror does.
"""

from sparkmirror.testing.admins import AskedAdmin, ForwardingAdminContract
from sparkmirror.testing.filters import ConfigPropertyFilterContract, GroupFilterContract, TopicFilterContract
from sparkmirror.testing.policies import ReplicationPolicyContract

__all__ = [
    "AskedAdmin",
    "ConfigPropertyFilterContract",
    "ForwardingAdminContract",
    "GroupFilterContract",
    "ReplicationPolicyContract",
    "TopicFilterContract",
]
