"""Rules files mean what they mean to Prometheus' JMX exporter."""

import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.exposition import Written
from sparkmirror.metrics.jmx_rules import safe_name
from sparkmirror.metrics.jmx_rules_file import read_rules
from sparkmirror.metrics.mbeans import MBean
from sparkmirror.metrics.naming import Naming, as_the_reporter

SOURCE = MBean(
    "kafka.connect.mirror",
    (
        ("type", "MirrorSourceConnector"),
        ("source", "a"),
        ("target", "b"),
        ("topic", "a.orders"),
        ("partition", "3"),
    ),
    ("record-count", "byte-rate"),
    (7, 0.5),
    (("type", "MirrorSourceConnector"), ("target", "b"), ("topic", "a.orders"), ("partition", "3")),
)
STATUS = MBean(
    "kafka.connect",
    (("type", "connector-task-metrics"), ("connector", "a->b.c"), ("task", "0")),
    ("status",),
    ("running",),
)
TOTAL = MBean(
    "kafka.consumer", (("type", "consumer-metrics"), ("client-id", "x")), ("incoming-byte-total",), (9,)
)


def named(rules: str, *beans: MBean) -> list[Written]:
    return list(Naming(read_rules(rules).named).metrics(beans))


def samples(rules: str, *beans: MBean) -> dict[str, float]:
    return {head: number for metric in named(rules, *beans) for head, number in metric.samples}


def test_groups_of_the_pattern_make_names_labels_and_help() -> None:
    rules = """
        rules:
          - pattern: mirror<type=(.+), source=(.+), target=.+, topic=(.+), partition=(\\d+)><>(record-.+)
            name: mm_$5
            labels: {topic: "$3", "$1": "from-$2", none: ""}
            help: "$5 of $1"
            type: GAUGE
        """
    head = 'mm_record_count:_7_0{MirrorSourceConnector="from-a",topic="a.orders"}'
    text = "record-count: 7.0 of MirrorSourceConnector"  # the last group takes the value too, as in Java
    assert named(rules, SOURCE) == [Written("mm_record_count:_7_0", text, "gauge", [(head, 7)])]


def test_the_first_rule_that_matches_decides_and_no_rule_is_no_sample() -> None:
    rules = """
        rules:
          - {pattern: "record-(count)", name: first}
          - {pattern: "record-count", name: second}
        """
    assert samples(rules, SOURCE) == {"first": 7}


def test_rules_for_the_mbeans_of_kafka_3_9_name_those_of_kafka_4() -> None:
    """The MSK samples have such rules, which match nothing of a Java 4."""
    rules = """
        lowercaseOutputName: true
        rules:
          - pattern: <type=MirrorSourceConnector, target=(.+), topic=(.+), partition=([0-9]+)><>([a-z-]+)
            name: kafka_connect_mirror_source_connector_$4
            labels: {destination: $1, topic: $2, partition: $3}
        """
    labels = '{destination="b",partition="3",topic="a.orders"}'
    assert samples(rules, SOURCE) == {
        f"kafka_connect_mirror_source_connector_record_count{labels}": 7,
        f"kafka_connect_mirror_source_connector_byte_rate{labels}": 0.5,
    }


def test_values_of_texts_come_from_the_rule_and_follow_the_value() -> None:
    rules = """
        rules:
          - {pattern: "connector=(.+), task=(.+)><>status: ([a-z]+)", name: status, value: 1, labels: {s: $3}}
        """
    naming = Naming(read_rules(rules).named)
    for state in ("running", "failed"):
        (metric,) = naming.metrics([STATUS._replace(values=(state,))])
        assert metric.samples == [(f'status{{s="{state}"}}', 1.0)]
    assert samples("rules: [{pattern: status, name: x}]", STATUS) == {}  # a text without a value
    assert samples("rules: [{pattern: 'status: (.+)', name: x, value: $1}]", STATUS) == {}  # no number


def test_a_pattern_may_choose_by_the_value_and_is_asked_each_time() -> None:
    naming = Naming(read_rules("rules: [{pattern: 'record-count: 7', name: seven}]").named)
    assert [len(list(naming.metrics([SOURCE._replace(values=(value, 0.5))]))) for value in (8, 7, 70)] == [
        0,
        1,
        1,
    ]


def test_factor_type_and_counters() -> None:
    (metric,) = named("rules: [{pattern: byte-rate, name: kilo, valueFactor: 0.001, type: COUNTER}]", SOURCE)
    assert (metric.name, metric.kind, metric.samples) == ("kilo_total", "counter", [("kilo_total", 0.0005)])
    (metric,) = named("{inferCounterTypeFromName: true, rules: [{pattern: incoming, name: in_total}]}", TOTAL)
    assert metric.kind == "counter"
    (metric,) = named("rules: [{pattern: incoming, name: in_total}]", TOTAL)
    assert metric.kind == "untyped"


def test_samples_of_equal_labels_get_the_mbeans_name() -> None:
    other = TOTAL._replace(properties=(("type", "consumer-metrics"), ("client-id", "y|z")))
    assert samples("rules: [{pattern: incoming, name: n}]", TOTAL, other) == {
        'n{_objectname="kafka.consumer<type=consumer-metrics, client-id=x><>incoming-byte-total"}': 9,
        'n{_objectname="kafka.consumer<type=consumer-metrics, client-id=\\"y|z\\"><>incoming-byte-total"}': 9,
    }


def test_names_become_safe() -> None:
    assert safe_name("a.b--c__d é:e") == "a_b_c_d_:e"
    assert safe_name("9lives") == "_9lives"


def test_a_config_map_of_strimzi_holds_the_file() -> None:
    resources = """
kind: KafkaMirrorMaker2
---
kind: ConfigMap
data:
  metrics-config.yml: |
    rules:
    - {pattern: record-count, name: inside}
"""
    assert samples(resources, SOURCE) == {"inside": 7}


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("rules: [{name: x}]", "needs a pattern"),
        ("rules: [{pattern: x, help: y}]", "needs a name"),
        ("", "must be a list"),
        ("rules: [{pattern: x, name: $1}]", "has no group 1"),
        ("rules: [{pattern: '(', name: x}]", "not a usable Java regular expression"),
        ("rules: [{pattern: x, name: y, valueFactor: much}]", "must be a number"),
        ("rules: [", "no YAML"),
        ("- a", "must hold keys"),
        ("rules: 7", "must be a list"),
    ],
)
def test_what_is_no_rules_file_is_refused(rules: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read_rules(rules)


def test_a_pattern_that_takes_too_long_is_an_error() -> None:
    slow = MBean("d", (("type", "a" * 60),), ("x",), (1,))
    with pytest.raises(ConfigError, match="takes more than"):
        named("rules: [{pattern: 'type=(?:a|aa)+[b]', name: x}]", slow)


@pytest.mark.parametrize(
    ("rules", "construct"),
    [
        ("{whitelistObjectNames: ['kafka.connect:*'], rules: []}", "the file has whitelistObjectNames"),
        ("{excludeObjectNameAttributes: {}, rules: []}", "the file has excludeObjectNameAttributes"),
        ("rules: [{pattern: x, name: y, cache: true}]", "a rule has cache"),
        ("rules: [{pattern: x, name: y, attrNameSnakeCase: true}]", "a rule has attrNameSnakeCase"),
        ("rules: [{pattern: x, name: '${y}'}]", r"'\${' is not supported"),
        (r"rules: [{pattern: x, name: '\$y'}]", r"'\\\$' is not supported"),
        (r"rules: [{pattern: '(.)\1', name: y}]", "not a usable Java regular expression"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(rules: str, construct: str) -> None:
    with pytest.raises(ConfigError, match=construct):
        read_rules(rules)


def test_keys_of_the_exporters_process_are_skipped() -> None:
    rules = "{startDelaySeconds: 0, ssl: false, cacheRules: true, rules: [{pattern: record-count, name: x}]}"
    assert samples(rules, SOURCE) == {"x": 7}


def test_rules_as_in_the_exporters_examples_and_in_strimzis_files() -> None:
    rules = """
        lowercaseOutputName: true
        lowercaseOutputLabelNames: true
        rules:
          - pattern : kafka.server<type=(.+), name=(.+), clientId=(.+), topic=(.+), partition=(.*)><>Value
            name: kafka_server_$1_$2
            type: GAUGE
            labels:
              clientId: "$3"
              topic: "$4"
              partition: "$5"
          - pattern: kafka.(\\w+)<type=(.+), name=(.+), (.+)=(.*), (.+)=(.+)><>(\\d+)thPercentile
            name: kafka_$1_$2_$3
            labels:
              "$4": "$5"
              "$6": "$7"
              quantile: "0.$8"
          - pattern: 'kafka.(.+)<type=app-info, client-id=(.+)><>start-time-ms'
            name: kafka_$1_start_time_seconds
            valueFactor: 0.001
            help: "Kafka $1 JMX metric start time seconds"
          - pattern: 'kafka.(.+)<type=app-info, client-id=(.+)><>(commit-id|version): (.+)'
            name: kafka_$1_$3_info
            value: 1
            labels:
              clientId: "$2"
              $3: "$4"
          - pattern: kafka.(.+)<type=(.+)-metrics, client-id=(.*)><>(.+-total|.+-avg|.+-bytes|.+-count)
            name: kafka_$2_$4
            labels:
              clientId: "$3"
            type: UNTYPED
        """
    info = MBean("kafka.connect", (("type", "app-info"), ("client-id", "x")), ("version",), ("4.3",))
    started = info._replace(attributes=("start-time-ms",), values=(2000,))
    quantile = MBean(
        "kafka.server",
        (("type", "T"), ("name", "N"), ("a", "1"), ("b", "2")),
        ("99thPercentile",),
        (0.5,),
    )
    assert samples(rules, info, started, quantile, TOTAL) == {
        'kafka_connect_version_info{version="4.3",clientid="x"}': 1.0,
        "kafka_connect_start_time_seconds": 2.0,
        'kafka_server_t_n{a="1",b="2",quantile="0.99"}': 0.5,
        'kafka_consumer_incoming_byte_total{clientid="x"}': 9,
    }


def test_the_reporters_names_have_prefix_group_and_name() -> None:
    found = {
        head: number
        for metric in Naming(as_the_reporter).metrics([SOURCE, STATUS, TOTAL])
        for head, number in metric.samples
    }
    labels = '{source="a",target="b",topic="a.orders",partition="3"}'
    assert found == {
        f"kafka_connect_mirror_mirrorsourceconnector_record_count{labels}": 7,
        f"kafka_connect_mirror_mirrorsourceconnector_byte_rate{labels}": 0.5,
        'kafka_connect_connector_task_metrics_status_info{status="running",connector="a->b.c",task="0"}': 1.0,
        'kafka_consumer_consumer_metrics_incoming_byte{client_id="x"}': 9,
    }
