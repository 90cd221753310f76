from pathlib import Path

from sparkmirror.clusters.broker import Broker, BrokerJvm, server_properties
from sparkmirror.clusters.cluster_state import ClusterSpec, NodeState

HOME = Path("/clusters/source")
QUORUM = [Broker(i, HOME, NodeState(9000 + i, 9100 + i)) for i in range(3)]


def test_three_nodes_form_one_quorum() -> None:
    properties = server_properties(QUORUM[1], QUORUM, ClusterSpec("source"))
    assert properties["node.id"] == "1"
    assert properties["controller.quorum.voters"] == "0@127.0.0.1:9100,1@127.0.0.1:9101,2@127.0.0.1:9102"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9001,CONTROLLER://127.0.0.1:9101"
    assert properties["log.dirs"] == "/clusters/source/broker-1"


def test_internal_topics_have_a_replica_on_each_broker() -> None:
    for brokers, copies, in_sync in ((1, "1", "1"), (3, "3", "2")):
        properties = server_properties(QUORUM[0], QUORUM[:brokers], ClusterSpec("source"))
        assert properties["offsets.topic.replication.factor"] == copies
        assert properties["transaction.state.log.replication.factor"] == copies
        assert properties["transaction.state.log.min.isr"] == in_sync


def test_given_settings_override_the_defaults() -> None:
    settings = {"broker.session.timeout.ms": "9000", "num.partitions": "8"}
    spec = ClusterSpec("source", settings=settings)
    assert server_properties(QUORUM[0], QUORUM[:1], spec).items() >= settings.items()


def test_brokers_with_a_small_heap_have_few_threads() -> None:
    large, small = (ClusterSpec("source", heap_mb=heap_mb) for heap_mb in (512, 256))
    assert "num.io.threads" not in server_properties(QUORUM[0], QUORUM[:1], large)
    assert server_properties(QUORUM[0], QUORUM[:1], small)["num.io.threads"] == "2"


def test_settings_are_escaped_for_java_properties(tmp_path: Path) -> None:
    broker = Broker(0, tmp_path, NodeState(9092, 9093))
    broker.configure([broker], ClusterSpec("source", settings={"sasl.jaas.config": 'a\\b="ü"'}))
    assert 'sasl.jaas.config=a\\\\b\\="\\u00fc"' in broker.properties_file.read_text().splitlines()


def test_large_heaps_have_kafkas_jvm_options_and_small_ones_those_for_a_fast_start() -> None:
    large = BrokerJvm("java", Path("/jars"), heap_mb=512).command("kafka.Kafka", "server.properties")
    small = BrokerJvm("java", Path("/jars"), heap_mb=256).command("kafka.Kafka", "server.properties")
    assert {"-Xmx512m", "-XX:+UseG1GC"} <= set(large)
    assert {"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} <= set(small)
    assert large[-4:] == ["-cp", "/jars/*", "kafka.Kafka", "server.properties"]
