"""Options of a JVM in the variables of other images of Kafka."""

import pytest

from sparkmirror.container.jvm_options import Exporter, jvm_options
from sparkmirror.domain.errors import ConfigError

JAR = "/opt/jmx-exporter/jmx_prometheus_javaagent-0.19.0.jar"
RULES = "/opt/jmx-exporter/kafka-2_0_0.yml"


@pytest.mark.parametrize(
    "variable", ["KAFKA_HEAP_OPTS", "HEAP_OPTS", "KAFKA_OPTS", "EXTRA_ARGS", "KAFKA_JMX_OPTS"]
)
def test_an_exporter_opens_its_address_with_its_rules(variable: str) -> None:
    options = jvm_options({variable: f"-javaagent:{JAR}=9404:{RULES}"})
    assert options.exporter == Exporter(variable, "9404", RULES)
    assert options.without_effect == ()


@pytest.mark.parametrize(
    ("target", "address", "rules"),
    [
        ("9404:/r.yml", "9404", "/r.yml"),
        ("0.0.0.0:9404:/r.yml", "0.0.0.0:9404", "/r.yml"),
        ("localhost:9404:/r.yml", "localhost:9404", "/r.yml"),
        ("kafka-connect-0.local:80:r.yml", "kafka-connect-0.local:80", "r.yml"),
        ("[::1]:9404:/r.yml", "[::1]:9404", "/r.yml"),
        ("9404:/a:b/r.yml", "9404", "/a:b/r.yml"),
    ],
)
def test_the_option_of_the_exporter(target: str, address: str, rules: str) -> None:
    exporter = jvm_options({"KAFKA_OPTS": f"-javaagent:{JAR}={target}"}).exporter
    assert exporter == Exporter("KAFKA_OPTS", address, rules)


@pytest.mark.parametrize(
    "jar",
    [
        "jmx_prometheus_javaagent.jar",
        "./libs/jmx_prometheus_javaagent-1.5.0.jar",
        "/usr/share/java/prometheus/jmx_prometheus_javaagent-0.3.1.redhat-00006.jar",
    ],
)
def test_any_version_of_the_exporter(jar: str) -> None:
    assert jvm_options({"KAFKA_OPTS": f"-javaagent:{jar}=1:f"}).exporter == Exporter("KAFKA_OPTS", "1", "f")


@pytest.mark.parametrize(
    "target", ["", "=", "=9404", "=9404:", "=host:9404", "=:9404:/r.yml", "=123456:/r.yml"]
)
def test_an_exporter_that_can_not_be_understood(target: str) -> None:
    with pytest.raises(ConfigError, match=r"KAFKA_OPTS: the JMX exporter's option is .*PORT:FILE"):
        jvm_options({"KAFKA_OPTS": f"-javaagent:{JAR}{target}"})


def test_the_same_exporter_twice_is_one() -> None:
    agent = f"-javaagent:{JAR}=9404:{RULES}"
    assert jvm_options({"KAFKA_HEAP_OPTS": agent, "EXTRA_ARGS": agent}).exporter is not None


@pytest.mark.parametrize("other", ["9405:/r.yml", "9404:/other.yml", "localhost:9404:/r.yml"])
def test_two_exporters_contradict_each_other(other: str) -> None:
    environ = {"KAFKA_OPTS": f"-javaagent:{JAR}=9404:/r.yml", "EXTRA_ARGS": f"-javaagent:{JAR}={other}"}
    with pytest.raises(ConfigError, match=r"EXTRA_ARGS: asks for another address .* than KAFKA_OPTS"):
        jvm_options(environ)


def test_other_options_have_no_effect_and_are_named_once() -> None:
    environ = {
        "KAFKA_HEAP_OPTS": f"-Xmx256m -Xms128M -javaagent:{JAR}=9404:{RULES}",
        "KAFKA_OPTS": "-Djavax.net.ssl.keyStorePassword=secret -javaagent:/j.jar=port=8778",
        "JMX_PORT": "9999",
        "KAFKA_LOG4J_OPTS": "-Dlog4j.configuration=file:/x",
        "KAFKA_JMX_PORT": "",
    }
    assert jvm_options(environ).without_effect == (
        "KAFKA_HEAP_OPTS: -Xmx256m -Xms128M have no effect here; the heap of Spark is spark.driver.memory",
        "KAFKA_OPTS: -Djavax.net.ssl.keyStorePassword=… -javaagent:/j.jar=port=8778 have no effect here",
        "KAFKA_LOG4J_OPTS has no effect here",
        "JMX_PORT has no effect here",
    )


def test_the_file_of_logins_has_an_effect() -> None:
    environ = {"KAFKA_OPTS": "-Djava.security.auth.login.config=/etc/jaas.conf"}
    assert jvm_options(environ) == (None, ())


def test_an_environment_without_any() -> None:
    assert jvm_options({"PATH": "/bin", "KAFKA_HOME": "/opt/kafka"}) == (None, ())
