"""A mirror with the replication policy, topic filter and admin of docs/plugins.md."""

import os
from pathlib import Path

import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import append, create_topic, keyed, numbered, replication_factor, topics
from tests.support.documented_plugins import install
from tests.support.mirror import running_mirror
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value

ARRIVES_WITHIN_S = 30
TOUCHY = """
from acme_mirror import TeamTopics

class Touchy(TeamTopics):
    def should_replicate(self, topic):
        if "boom" in topic:
            raise ValueError("no, not that one")
        return super().should_replicate(topic)
"""


def test_mirror_uses_the_documented_plugins(
    source_cluster: LocalCluster,
    target_cluster: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, orders = install(tmp_path / "acme"), tmp_path / "orders"
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    monkeypatch.setenv("PYTHONPATH", path)
    (folder / "touchy.py").write_text(TOUCHY)
    for topic in ("team.plugged", "team.plugged-test", "other.plugged"):
        create_topic(source_cluster.bootstrap_servers, topic, partitions=2)
        append(source_cluster, topic, numbered(5))
    properties = {
        "clusters": "plug, in",
        "plug.bootstrap.servers": source_cluster.bootstrap_servers,
        "in.bootstrap.servers": target_cluster.bootstrap_servers,
        "plug->in.enabled": "true",
        "plug->in.topics": "(team|other)[.]plugged.*",
        "plug->in.topics.exclude": ".*-test",
        "plug->in.groups": "none",
        "plug->in.topic.filter.class": "touchy:Touchy",
        "plug->in.topic.filter.team": "team",
        "replication.policy.class": "com.acme.kafka.SuffixPolicy",
        "forwarding.admin.class": "acme_mirror:TopicDesk",
        **{f"{alias}.admin.desk.file": str(orders) for alias in ("plug", "in")},
        **{f"{alias}.admin.desk.replicas": "1" for alias in ("plug", "in")},
        "replication.factor": "3",  # one broker would refuse this, but the plug-in does not request it
        "refresh.topics.interval.seconds": "1",
        "heartbeats.replication.enabled": "false",
    }
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        await_caught_up(source_cluster, target_cluster, "plug", ["team.plugged"])
        await_value(
            lambda: "in plug.checkpoints.internal 1\n" in orders.read_text(),
            ARRIVES_WITHIN_S,
            mirror.log_text,
        )
        (folder / "acme_mirror.py").unlink()  # later tests must not import it
        create_topic(source_cluster.bootstrap_servers, "team.plugged.late", partitions=1)
        await_value(
            lambda: "team.plugged.late--plug" in topics(target_cluster), ARRIVES_WITHIN_S, mirror.log_text
        )
        create_topic(source_cluster.bootstrap_servers, "boom.plugged", partitions=1)
        mirror.await_log(
            r"boom.plugged blocked: "
            r"touchy:Touchy.should_replicate\('boom.plugged'\) raised ValueError: no"
        )
        create_topic(source_cluster.bootstrap_servers, "team.plugged.later", partitions=1)
        await_value(
            lambda: "team.plugged.later--plug" in topics(target_cluster), ARRIVES_WITHIN_S, mirror.log_text
        )
        append(source_cluster, "team.plugged", numbered(3))
        await_caught_up(source_cluster, target_cluster, "plug", ["team.plugged"])
        mirror.stop()
    assert keyed(target_cluster, "team.plugged--plug") == [*numbered(5), *numbered(3)]
    assert not [name for name in topics(target_cluster) if "plugged-test" in name or "other.plugged" in name]
    assert replication_factor(target_cluster, "team.plugged--plug") == 1
    # Other tests may have created the topic of heartbeats.
    assert sorted({*orders.read_text().splitlines()} - {"in heartbeats 1"}) == sorted(
        [
            "in mm2-attempts.plug.internal 1",
            "in mm2-events.plug.internal 1",
            "in mm2-offsets.plug.internal 25",
            "in mm2-progress.plug.internal 1",
            "in plug.checkpoints.internal 1",
            "in team.plugged--plug 2",
            "in team.plugged.late--plug 1",
            "in team.plugged.later--plug 1",
            "plug mm2-offset-syncs.in.internal 1",
        ]
    )
    assert "nothing reads" not in mirror.log_text()
