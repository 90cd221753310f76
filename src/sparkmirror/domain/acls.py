"""Represents ACL bindings, with the numbers of Kafka's protocol."""

from dataclasses import dataclass
from enum import Enum, IntEnum


class ResourceType(IntEnum):
    """Numbers as in Kafka's protocol, like those of the other enums here."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class AclBinding:
    """The permission or denial of an operation on a resource for a principal."""

    resource_type: ResourceType
    pattern_type: PatternType
    resource_name: str
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    def __str__(self) -> str:
        who = self.principal if self.host == "*" else f"{self.principal} from {self.host}"
        pattern = "" if self.pattern_type is PatternType.LITERAL else f"{self.pattern_type.name} "
        resource = f"{self.resource_type.name} {pattern}{self.resource_name}"
        return f"{self.permission.name} {self.operation.name} on {resource} to {who}"


class SyncAcls(Enum):
    """`sync.acls`: TOPIC are MM2's literal topic patterns, ALL also prefixed ones, groups and ids."""

    TOPIC = "topic"
    ALL = "all"


class Claim(Enum):
    """The stored state of an ACL on the target that the mirror made, or was about to make."""

    INTENDED = "intended"
    """The ACL was missing; whether it was created then is unknown."""
    MADE = "made"
