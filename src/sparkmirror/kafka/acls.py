"""ACLs of one cluster: told, created, deleted. Each binding has a result of its own, in brokers' words."""

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
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import AnyBroker
from sparkmirror.kafka.error_codes import NONE, Needed, error_for
from sparkmirror.policies.admin_writes import AclResults

_BINDINGS_PER_REQUEST: Final = 1000
"""KRaft's controller makes a record of each, and refuses a request that would make more than 10,000."""

_Enum = TypeVar("_Enum", ResourceType, PatternType, AclOperation, AclPermission)


class Acls:
    """Every method blocks and raises KafkaError when a request as a whole failed. One owner."""

    def __init__(self, broker: AnyBroker, settings: ConnectionSettings) -> None:
        """`settings` are those that the broker is reached with."""
        self._broker = broker
        self._settings = settings

    def described(self, resource_type: ResourceType = ResourceType.ANY) -> Sequence[AclBinding]:
        """Those of a kind of resource, or all; none that only newer brokers know of.

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
        answer = self._broker.request("describe ACLs", request, DescribeAclsResponse)
        if answer.error_code != NONE:
            raise self._error("describe ACLs", answer, Need.DESCRIBE_ACLS)
        bindings = (_binding(resource, acl) for resource in answer.resources for acl in resource.acls)
        return [binding for binding in bindings if binding is not None]

    def create(self, bindings: Sequence[AclBinding]) -> AclResults:
        """What is there already stays as it is, and is a success."""
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
            for binding, answer in zip(some, change(some), strict=True):
                failed = answer.error_code != NONE
                results[binding] = (
                    self._error(f"{verb} ACL {binding}", answer, Need.ALTER_ACLS) if failed else None
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
        results: Sequence[Any] = self._broker.request("create ACLs", request, CreateAclsResponse).results
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
        answer = self._broker.request("delete ACLs", request, DeleteAclsResponse)
        return [_worst(result) for result in answer.filter_results]

    def _error(self, action: str, answer: Any, need: Need) -> KafkaError:
        needed = Needed(self._settings, (need.of(),))
        context = f"{action} on {self._broker.cluster}"
        return error_for(answer.error_code, context, answer.error_message, needed)


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
