"""Tries rights that brokers don't list, by requests that do nothing.

A broker looks at the right first, whether it coordinates the group or transactional id or not. Looking the
coordinator up would make its topic where there is none.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse
from kafka.protocol.consumer import HeartbeatRequest, HeartbeatResponse
from kafka.protocol.producer import EndTxnRequest, EndTxnResponse

from sparkmirror.batches.producer import NOT_IDEMPOTENT
from sparkmirror.domain.acls import AclOperation, ResourceType
from sparkmirror.domain.rights import Right
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.wire.error_codes import (
    GROUP_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class _Trial(NamedTuple):
    """A request that needs a right on a name, and the error code in its response."""

    request: Callable[[str], Any]
    response_class: Any
    code_of: Callable[[Any], int]
    version_max: int


def _transaction_of_nobody(name: str) -> Any:
    producer_id, epoch = NOT_IDEMPOTENT
    return EndTxnRequest(
        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=False
    )


def _heartbeat_of_nobody(name: str) -> Any:
    return HeartbeatRequest(group_id=name, generation_id=-1, member_id="")


def _description(name: str) -> Any:
    return DescribeGroupsRequest(groups=[name], include_authorized_operations=False)


_TRIALS: Final = {
    (ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE): _Trial(
        _transaction_of_nobody, EndTxnResponse, lambda response: response.error_code, 4
    ),
    (ResourceType.GROUP, AclOperation.READ): _Trial(
        _heartbeat_of_nobody, HeartbeatResponse, lambda response: response.error_code, 4
    ),
    (ResourceType.GROUP, AclOperation.DESCRIBE): _Trial(
        _description, DescribeGroupsResponse, lambda response: response.groups[0].error_code, 5
    ),
}
_DENIED: Final = (GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def is_denied(cluster: Cluster, right: Right) -> bool:
    """Whether this principal lacks WRITE on a transactional id, or READ or DESCRIBE on a group.

    None of them need exist. Raises DisconnectedError when no broker responds.
    """
    trial = _TRIALS[right.resource_type, right.operation]
    response = cluster.request(
        f"try the right to {right}",
        trial.request(right.name),
        trial.response_class,
        version_max=trial.version_max,
    )
    return trial.code_of(response) in _DENIED
