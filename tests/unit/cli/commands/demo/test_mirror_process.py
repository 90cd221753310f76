from sparkmirror.cli.commands.demo.mirror_process import mirror_properties


def test_the_properties_name_both_clusters_and_the_topics() -> None:
    lines = mirror_properties("127.0.0.1:1", "127.0.0.1:2", ["orders", "page-views"]).splitlines()

    assert "clusters = source, target" in lines
    assert "source.bootstrap.servers = 127.0.0.1:1" in lines
    assert "target.bootstrap.servers = 127.0.0.1:2" in lines
    assert "source->target.topics = orders, page-views" in lines


def test_no_internal_topic_asks_for_more_replicas_than_there_are_brokers() -> None:
    lines = mirror_properties("a:1", "b:2", ["orders"]).splitlines()
    factors = dict(line.split(" = ") for line in lines if "replication.factor" in line)

    assert set(factors.values()) == {"1"}
    assert {"offset.storage.replication.factor", "offset-syncs.topic.replication.factor"} <= set(factors)
