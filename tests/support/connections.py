"""Connection settings of the package's own clients for a cluster of the tests."""

from dataclasses import replace

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings
from tests.support.any_cluster import AnyCluster


def connection(cluster: AnyCluster, **changes: float | str) -> ConnectionSettings:
    addresses = tuple((HOST, broker.port) for broker in cluster.brokers)
    return replace(ConnectionSettings(addresses), **changes)  # type: ignore[arg-type]  # its fields
