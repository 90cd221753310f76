"""ACLs of a cluster as tuples: read, created and deleted."""

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import admin
from tests.support.recorded_setup import Acl

_TIMEOUT_S: Final = 30.0


def acls(cluster: LocalCluster) -> frozenset[Acl]:
    every: tuple[Any, ...] = (
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    client = admin(cluster)
    return frozenset(
        (
            acl.restype.name,
            acl.resource_pattern_type.name,
            acl.name,
            acl.principal,
            acl.host,
            acl.operation.name,
            acl.permission_type.name,
        )
        for acl in client.describe_acls(AclBindingFilter(*every)).result(_TIMEOUT_S)
    )


def create_acls(cluster: LocalCluster, wanted: Iterable[Acl]) -> None:
    client = admin(cluster)
    for future in client.create_acls([AclBinding(*_parts(acl)) for acl in wanted]).values():
        future.result(_TIMEOUT_S)


def delete_acl(cluster: LocalCluster, acl: Acl) -> None:
    client = admin(cluster)
    (future,) = client.delete_acls([AclBindingFilter(*_parts(acl))]).values()
    assert len(future.result(_TIMEOUT_S)) == 1


def _parts(acl: Acl) -> tuple[Any, ...]:
    resource, pattern, name, principal, host, operation, permission = acl
    return (
        ResourceType[resource],
        name,
        ResourcePatternType[pattern],
        principal,
        host,
        AclOperation[operation],
        AclPermissionType[permission],
    )
