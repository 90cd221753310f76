"""Offers `MirrorClient`'s methods as functions that connect for one call, like `RemoteClusterUtils`."""

import re
from collections.abc import Collection, Mapping

from sparkmirror.client.mirror_client import MirrorClient, OffsetAndMetadata
from sparkmirror.domain.ids import TopicPartition


def replication_hops(properties: Mapping[str, str], upstream_cluster: str) -> int:
    with MirrorClient(properties) as client:
        return client.replication_hops(upstream_cluster)


def heartbeat_topics(properties: Mapping[str, str]) -> set[str]:
    with MirrorClient(properties) as client:
        return client.heartbeat_topics()


def checkpoint_topics(properties: Mapping[str, str]) -> set[str]:
    with MirrorClient(properties) as client:
        return client.checkpoint_topics()


def upstream_clusters(properties: Mapping[str, str]) -> set[str]:
    with MirrorClient(properties) as client:
        return client.upstream_clusters()


def translate_offsets(
    properties: Mapping[str, str], remote_cluster: str, group: str, timeout_s: float = 30.0
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    with MirrorClient(properties) as client:
        return client.remote_consumer_offsets(group, remote_cluster, timeout_s)


def translate_offsets_of(
    properties: Mapping[str, str],
    remote_cluster: str,
    groups: Collection[str] | re.Pattern[str],
    timeout_s: float = 30.0,
) -> Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]:
    with MirrorClient(properties) as client:
        return client.remote_offsets_of(groups, remote_cluster, timeout_s)
