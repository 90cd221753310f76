"""Lists the rights that requests need, and makes the command that grants a missing one.

`Need` follows "Authorization and ACLs: protocols" of Kafka's documentation. Where a right on the cluster
would do as well (CREATE), the narrower one is named.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from sparkmirror.domain.acls import AclOperation, PatternType, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings, SecurityProtocol

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of clients without TLS and SASL."""

_PLACEHOLDER: Final = "User:NAME"
_NO_AUTHENTICATION: Final = frozenset({SecurityProtocol.PLAINTEXT})


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource, or on all resources whose names begin with a prefix."""

    resource_type: ResourceType
    name: str
    operation: AclOperation
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        if self.resource_type is ResourceType.CLUSTER:
            return f"{self.operation.name} on the cluster"
        kind = _KINDS[self.resource_type]
        pattern = "s that begin with" if self.pattern_type is PatternType.PREFIXED else ""
        return f"{self.operation.name} on {kind.words}{pattern} {self.name}"


class _Kind(NamedTuple):
    words: str
    option: str


_KINDS: Final = {
    ResourceType.TOPIC: _Kind("topic", "--topic"),
    ResourceType.GROUP: _Kind("group", "--group"),
    ResourceType.CLUSTER: _Kind("cluster", "--cluster"),
    ResourceType.TRANSACTIONAL_ID: _Kind("transactional id", "--transactional-id"),
    ResourceType.DELEGATION_TOKEN: _Kind("delegation token", "--delegation-token"),
    ResourceType.USER: _Kind("user", "--user-principal"),
}


class Need(Enum):
    """The right that a request needs on each resource that it names."""

    READ_TOPIC = ("Fetch", ResourceType.TOPIC, AclOperation.READ)
    WRITE_TOPIC = ("Produce", ResourceType.TOPIC, AclOperation.WRITE)
    DESCRIBE_TOPIC = ("Metadata, ListOffsets", ResourceType.TOPIC, AclOperation.DESCRIBE)
    CREATE_TOPIC = ("CreateTopics", ResourceType.TOPIC, AclOperation.CREATE)
    DELETE_RECORDS = ("DeleteRecords", ResourceType.TOPIC, AclOperation.DELETE)
    DELETE_TOPIC = ("DeleteTopics", ResourceType.TOPIC, AclOperation.DELETE)
    GROW_TOPIC = ("CreatePartitions", ResourceType.TOPIC, AclOperation.ALTER)
    DESCRIBE_TOPIC_CONFIGS = ("DescribeConfigs", ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS)
    ALTER_TOPIC_CONFIGS = ("IncrementalAlterConfigs", ResourceType.TOPIC, AclOperation.ALTER_CONFIGS)
    DESCRIBE_GROUP = ("DescribeGroups, OffsetFetch, ListGroups", ResourceType.GROUP, AclOperation.DESCRIBE)
    READ_GROUP = ("JoinGroup, OffsetCommit", ResourceType.GROUP, AclOperation.READ)
    DELETE_GROUP = ("OffsetDelete", ResourceType.GROUP, AclOperation.DELETE)
    TRANSACT = ("InitProducerId, EndTxn", ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE)
    NUMBER_RECORDS = ("InitProducerId before 2.8", ResourceType.CLUSTER, AclOperation.IDEMPOTENT_WRITE)
    WRITE_MARKERS = ("WriteTxnMarkers", ResourceType.CLUSTER, AclOperation.ALTER)
    DESCRIBE_ACLS = ("DescribeAcls", ResourceType.CLUSTER, AclOperation.DESCRIBE)
    ALTER_ACLS = ("CreateAcls, DeleteAcls", ResourceType.CLUSTER, AclOperation.ALTER)
    DESCRIBE_QUOTAS = ("DescribeClientQuotas", ResourceType.CLUSTER, AclOperation.DESCRIBE_CONFIGS)
    ALTER_QUOTAS = ("AlterClientQuotas", ResourceType.CLUSTER, AclOperation.ALTER_CONFIGS)
    DESCRIBE_USERS = ("DescribeUserScramCredentials", ResourceType.CLUSTER, AclOperation.DESCRIBE)
    ALTER_USERS = ("AlterUserScramCredentials", ResourceType.CLUSTER, AclOperation.ALTER)

    def __init__(self, requests: str, resource_type: ResourceType, operation: AclOperation) -> None:
        self.requests = requests
        self.resource_type = resource_type
        self.operation = operation

    def of(self, name: str = CLUSTER_NAME, pattern_type: PatternType = PatternType.LITERAL) -> Right:
        """The right on the resource of this name; the cluster needs no name."""
        return Right(self.resource_type, name, self.operation, pattern_type)


def principal_of(connection: ConnectionSettings) -> str:
    """Return this client's principal; `User:NAME`, to be filled in, where only brokers know it."""
    return ANONYMOUS if connection.security_protocol in _NO_AUTHENTICATION else _PLACEHOLDER


def grant_command(
    right: Right, principal: str, bootstrap_servers: str, also: Iterable[AclOperation] = ()
) -> str:
    """The whole line for a shell, for this operation and `also` others on the same resource.

    Operations are spelled as kafka-acls.sh knows them: `DescribeConfigs`.
    """
    kind = _KINDS[right.resource_type]
    words = ["kafka-acls.sh", "--bootstrap-server", bootstrap_servers, "--add"]
    words += ["--allow-principal", principal]
    for operation in (right.operation, *also):
        words += ["--operation", operation.name.title().replace("_", "")]
    words.append(kind.option)
    if right.resource_type is not ResourceType.CLUSTER:
        words.append(right.name)
    if right.pattern_type is PatternType.PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return shlex.join(words)


def how_to_grant(right: Right, connection: ConnectionSettings) -> str:
    """`needs WRITE on topic orders: kafka-acls.sh …`, with these settings' principal and servers."""
    return f"needs {right}: {grant_command(right, principal_of(connection), connection.servers)}"
