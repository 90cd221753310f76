"""Sets and removes the quotas of all clients of a cluster."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from kafka.protocol.admin import AlterClientQuotasRequest, AlterClientQuotasResponse

from sparkmirror.kafka.cluster import Cluster
from tests.support.any_cluster import AnyCluster
from tests.support.connections import connection


def set_quotas(cluster: AnyCluster, quotas: Mapping[str, float | None]) -> None:
    """Set the quotas of the default client id; None removes one."""
    data = AlterClientQuotasRequest.EntryData
    ops = [data.OpData(key=name, value=value or 0.0, remove=value is None) for name, value in quotas.items()]
    default = data.EntityData(entity_type="client-id", entity_name=None)
    request = AlterClientQuotasRequest(entries=[data(entity=[default], ops=ops)], validate_only=False)
    with closing(Cluster(connection(cluster))) as opened:
        response = opened.request("alter client quotas", request, AlterClientQuotasResponse)
    assert not [entry.error_message for entry in response.entries if entry.error_code]


@contextmanager
def quota(cluster: AnyCluster, key: str, value: float) -> Iterator[None]:
    """Set a quota of the default client id during the block."""
    set_quotas(cluster, {key: value})
    try:
        yield
    finally:
        set_quotas(cluster, {key: None})
