"""Starts a source and a target of real brokers for as long as a block lasts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from sparkmirror.clusters import ClusterSpec, LocalCluster, start_clusters


@contextmanager
def cluster_pair_of(
    brokers: Literal[1, 3], settings: Mapping[str, str], home: Path
) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """Start both clusters. They are killed at the end, as an orderly stop would wait for stopped brokers."""
    specs = [ClusterSpec(name, brokers, settings, heap_mb=256) for name in ("source", "target")]
    source, target = start_clusters([(spec, home / spec.name) for spec in specs])
    try:
        yield source, target
    finally:
        for cluster in (source, target):
            cluster.stop(timeout_s=0)
