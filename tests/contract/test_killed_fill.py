"""All brokers are killed while a beginning is filled, and again behind it: the log starts where it must."""

from sparkmirror.clusters import LocalCluster
from tests.contract.killed_fill import fill_under_kills

OFFSETS = 3_000_007


def test_a_beginning_survives_the_death_of_its_only_broker(frail_cluster: LocalCluster) -> None:
    fill_under_kills(frail_cluster, "killed.fill", OFFSETS, replicas=1, kills=1)
