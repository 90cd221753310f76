"""Local Kafka brokers for the demo, tests and benchmarks."""

from sparkmirror.clusters.cluster_state import ClusterSpec
from sparkmirror.clusters.local import LocalCluster, start_clusters
from sparkmirror.java.find_java import Java, find_java
from sparkmirror.java.jars import ensure_jars, kafka_jars, mirror_maker_jars

__all__ = [
    "ClusterSpec",
    "Java",
    "LocalCluster",
    "ensure_jars",
    "find_java",
    "kafka_jars",
    "mirror_maker_jars",
    "start_clusters",
]
