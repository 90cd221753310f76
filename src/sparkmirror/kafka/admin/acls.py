"""Describes, creates and deletes ACLs of one cluster. Each binding has a result of its own."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from kafka.protocol.admin import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.wire.error_codes import NONE
from sparkmirror.policies.admin_writes import AclResults

_BINDINGS_PER_REQUEST: Final = 1000
"""KRaft's controller makes a record of each, and refuses a request that would make more than 10,000."""

_Enum = TypeVar("_Enum", ResourceType, PatternType, AclOperation, AclPermission)


class Acls:
    """Every method blocks and raises KafkaError when a request as a whole failed. One owner."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def described(self, resource_type: ResourceType = ResourceType.ANY) -> Sequence[AclBinding]:
        """Describe the ACLs of one type of resource, or all. Types that only newer brokers know are left out.

        A KafkaError of code SECURITY_DISABLED says that there is no authorizer.
        """
        request = DescribeAclsRequest(
            resource_type_filter=resource_type,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        )
        response = self._cluster.request("describe ACLs", request, DescribeAclsResponse)
        if response.error_code != NONE:
            raise self._error("describe ACLs", response, Need.DESCRIBE_ACLS)
        bindings = (_binding(resource, acl) for resource in response.resources for acl in resource.acls)
        return [binding for binding in bindings if binding is not None]

    def create(self, bindings: Sequence[AclBinding]) -> AclResults:
        """Create bindings. One that exists stays as it is, and counts as a success."""
        return self._changed("create", bindings, self._create)

    def delete(self, bindings: Sequence[AclBinding]) -> AclResults:
        """Exactly these; what is not there is a success."""
        return self._changed("delete", bindings, self._delete)

    def _changed(
        self,
        verb: str,
        bindings: Sequence[AclBinding],
        change: Callable[[Sequence[AclBinding]], Sequence[Any]],
    ) -> AclResults:
        results: dict[AclBinding, KafkaError | None] = {}
        for some in _portions(bindings):
            for binding, response in zip(some, change(some), strict=True):
                failed = response.error_code != NONE
                results[binding] = (
                    self._error(f"{verb} ACL {binding}", response, Need.ALTER_ACLS) if failed else None
                )
        return results

    def _create(self, bindings: Sequence[AclBinding]) -> Sequence[Any]:
        creations = [
            CreateAclsRequest.AclCreation(
                resource_type=binding.resource_type,
                resource_name=binding.resource_name,
                resource_pattern_type=binding.pattern_type,
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission,
            )
            for binding in bindings
        ]
        request = CreateAclsRequest(creations=creations)
        results: Sequence[Any] = self._cluster.request("create ACLs", request, CreateAclsResponse).results
        return results

    def _delete(self, bindings: Sequence[AclBinding]) -> Sequence[Any]:
        filters = [
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=binding.resource_type,
                resource_name_filter=binding.resource_name,
                pattern_type_filter=binding.pattern_type,
                principal_filter=binding.principal,
                host_filter=binding.host,
                operation=binding.operation,
                permission_type=binding.permission,
            )
            for binding in bindings
        ]
        request = DeleteAclsRequest(filters=filters)
        response = self._cluster.request("delete ACLs", request, DeleteAclsResponse)
        return [_worst(result) for result in response.filter_results]

    def _error(self, action: str, response: Any, need: Need) -> KafkaError:
        return self._cluster.error(response.error_code, action, need.of(), message=response.error_message)


def _worst(result: Any) -> Any:
    """A filter that matches one binding at most may be refused, or its binding."""
    return next((match for match in result.matching_acls if match.error_code != NONE), result)


def _portions(bindings: Sequence[AclBinding]) -> Iterator[Sequence[AclBinding]]:
    left = iter(dict.fromkeys(bindings))
    while some := list(islice(left, _BINDINGS_PER_REQUEST)):
        yield some


def _binding(resource: Any, acl: Any) -> AclBinding | None:
    binding = AclBinding(
        _known(ResourceType, resource.resource_type),
        _known(PatternType, resource.pattern_type),
        resource.resource_name,
        acl.principal,
        acl.host,
        _known(AclOperation, acl.operation),
        _known(AclPermission, acl.permission_type),
    )
    kinds = binding.resource_type, binding.pattern_type, binding.operation, binding.permission
    return None if 0 in kinds else binding


def _known(kind: type[_Enum], number: int) -> _Enum:
    """UNKNOWN, which is 0, for what this version does not know."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
