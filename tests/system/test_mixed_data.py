"""Every kind of data arrives whole, record by record, over a stop and a restart."""

import pytest

from sparkmirror.cli.demo.compare import compare_topic
from tests.system import dual_run
from tests.system.dual_run import Mirrored


@pytest.mark.parametrize("topic", sorted({*dual_run.MIXED} - {dual_run.BIG_BATCH}))
def test_a_topic_is_the_same_on_both_clusters(mirrored: Mirrored, topic: str) -> None:
    source, target = mirrored.sides
    compared = compare_topic(source.bootstrap_servers, target.bootstrap_servers, topic, f"A.{topic}")
    assert compared.first_difference is None, str(compared.first_difference)
    assert compared.records > 0
