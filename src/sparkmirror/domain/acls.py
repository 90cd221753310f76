"""Which ACLs of source topics their remote topics get: rights to read, never rights to write (KIP-382)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum


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
    """Who may, or may not, do what with which resource."""

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


def target_acls(
    source: Iterable[AclBinding], should_replicate: Callable[[str], bool], remote_topic: Callable[[str], str]
) -> tuple[AclBinding, ...]:
    """The bindings to create on the target, each once, in the source's order.

    Only literal topic patterns are considered. ALLOW WRITE is left out and ALLOW ALL becomes ALLOW READ,
    because only the mirror writes to remote topics; denials stay as they are.
    """
    bindings = (
        replace(binding, resource_name=remote_topic(binding.resource_name), operation=_operation(binding))
        for binding in source
        if _is_replicable(binding) and should_replicate(binding.resource_name)
    )
    return tuple(dict.fromkeys(bindings))


def _is_replicable(binding: AclBinding) -> bool:
    return (
        binding.resource_type is ResourceType.TOPIC
        and binding.pattern_type is PatternType.LITERAL
        and (binding.permission, binding.operation) != (AclPermission.ALLOW, AclOperation.WRITE)
    )


def _operation(binding: AclBinding) -> AclOperation:
    allows_all = (binding.permission, binding.operation) == (AclPermission.ALLOW, AclOperation.ALL)
    return AclOperation.READ if allows_all else binding.operation
