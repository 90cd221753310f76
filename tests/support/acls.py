"""ACLs of a cluster as tuples: read, created and deleted.

A broker answers before it applies them: what creates ACLs waits until it does.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import admin
from tests.support.recorded_setup import Acl
from tests.support.waiting import await_value

_TIMEOUT_S: Final = 30.0


def acls(cluster: AnyCluster) -> frozenset[Acl]:
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


def create_acls(cluster: AnyCluster, wanted: Iterable[Acl]) -> None:
    client, expected = admin(cluster), frozenset(wanted)
    for future in client.create_acls([AclBinding(*_parts(acl)) for acl in expected]).values():
        future.result(_TIMEOUT_S)
    await_value(lambda: expected <= acls(cluster), _TIMEOUT_S, lambda: f"only {acls(cluster)}")


def delete_acl(cluster: AnyCluster, acl: Acl) -> None:
    """Does not wait until it is gone: a mirror may have created it again by then."""
    client = admin(cluster)
    (future,) = client.delete_acls([AclBindingFilter(*_parts(acl))]).values()
    assert len(future.result(_TIMEOUT_S)) == 1


@contextmanager
def in_force(cluster: AnyCluster, *wanted: Acl) -> Iterator[None]:
    """Waits until they are gone, too."""
    create_acls(cluster, wanted)
    try:
        yield
    finally:
        for acl in wanted:
            delete_acl(cluster, acl)
        await_value(lambda: acls(cluster).isdisjoint(wanted), _TIMEOUT_S, lambda: f"still {acls(cluster)}")


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
