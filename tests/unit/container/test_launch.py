"""The program that a container runs."""

import pytest

from sparkmirror.container.launch import Command, Program, Usage, launch
from sparkmirror.domain.errors import ConfigError
from tests.unit.container.test_worker_variables import CONFLUENT, DEBEZIUM

ENTRY = "/opt/sparkmirror/bin/container"
HTTP = ("--http", "127.0.0.1:8080")
SCRIPTS = ["/opt/kafka/bin/", "/opt/bitnami/kafka/bin/", "./bin/", ""]


@pytest.mark.parametrize("folder", SCRIPTS)
def test_kafkas_scripts_are_our_commands(folder: str) -> None:
    mirror_maker, worker = f"{folder}connect-mirror-maker.sh", f"{folder}connect-distributed.sh"
    assert launch([ENTRY, mirror_maker, "/mm2.properties"], {}) == Command(("run", *HTTP, "/mm2.properties"))
    assert launch([ENTRY, worker, "/c.properties"], {}) == Command(("worker", "/c.properties"))
    assert launch([worker, "/c.properties"], {}) == Command(("worker", "/c.properties")), "a pod's command"


def test_further_arguments_of_a_script_are_kept() -> None:
    words = ["/opt/kafka/bin/connect-mirror-maker.sh", "mm2.properties", "--clusters", "B"]
    assert launch(words, {}) == Command(("run", *HTTP, "mm2.properties", "--clusters", "B"))


def test_a_script_without_its_file() -> None:
    path = "/opt/kafka/bin/connect-distributed.sh"
    assert launch([path], {}) == Usage(f"USAGE: {path} [-daemon] connect-distributed.properties")
    assert launch([path, "-daemon"], CONFLUENT) == Usage(
        f"USAGE: {path} [-daemon] connect-distributed.properties"
    )


def test_a_daemon_runs_in_the_foreground() -> None:
    made = launch(["/opt/kafka/bin/connect-distributed.sh", "-daemon", "f"], {})
    assert isinstance(made, Command)
    assert made.words == ("worker", "f")
    assert made.remarks == ("-daemon has no effect: a container runs its program in the foreground",)


@pytest.mark.parametrize(
    "words",
    [
        [ENTRY],
        [ENTRY, "start"],
        [ENTRY, "worker"],
        [ENTRY, "/etc/confluent/docker/run"],
        ["/etc/confluent/docker/run"],
    ],
)
def test_a_worker_without_a_file_takes_variables(words: list[str]) -> None:
    made = launch(words, CONFLUENT)
    assert isinstance(made, Command)
    assert made.words == ("worker",)
    assert made.properties is not None
    assert "group.id=mirrors\n" in made.properties


def test_debeziums_entry() -> None:
    made = launch(
        ["/docker-entrypoint.sh", "start"], {**DEBEZIUM, "LOG_LEVEL": "DEBUG", "HEAP_OPTS": "-Xmx1g"}
    )
    assert isinstance(made, Command)
    assert made.words == ("worker", "--log-level", "debug")
    assert made.remarks == ("HEAP_OPTS: -Xmx1g has no effect here; the heap of Spark is spark.driver.memory",)


def test_a_worker_without_a_file_and_variables() -> None:
    with pytest.raises(ConfigError, match="CONNECT_BOOTSTRAP_SERVERS"):
        launch([ENTRY, "start"], {})
    assert launch([ENTRY], {}) == Command(()), "an overview"


def test_beside_a_file_variables_are_named_once() -> None:
    made = launch([ENTRY, "worker", "f"], {"CONNECT_GROUP_ID": "x", "KAFKA_CFG_NODE_ID": "0"})
    assert isinstance(made, Command)
    assert made.words == ("worker", "f")
    assert made.remarks == ("CONNECT_GROUP_ID, KAFKA_CFG_NODE_ID: no effect, since a file is given",)


def test_other_commands_get_their_arguments_as_they_are() -> None:
    environ = {**CONFLUENT, "KAFKA_HEAP_OPTS": "-Xmx1g"}
    for words in (("verify", "f"), ("lag", "f", "--wait"), ("--version",), ("watch", "f")):
        assert launch([ENTRY, *words], environ) == Command(words)
        assert launch([ENTRY, "sparkmirror", *words], environ) == Command(words)


@pytest.mark.parametrize(
    ("http", "added"),
    [("8080", ("--http", "8080")), ("0.0.0.0:9000", ("--http", "0.0.0.0:9000")), ("", ())],
)
def test_the_address_of_the_pages(http: str, added: tuple[str, ...]) -> None:
    assert launch([ENTRY, "run", "f"], {"SPARKMIRROR_HTTP": http}) == Command(("run", *added, "f"))


def test_options_of_the_user_come_last_and_so_count() -> None:
    made = launch([ENTRY, "run", "f", "--http", "9000"], {})
    assert made == Command(("run", *HTTP, "f", "--http", "9000"))


@pytest.mark.parametrize("command", ["run", "worker"])
def test_the_jmx_exporter_opens_its_port(command: str) -> None:
    environ = {
        "KAFKA_OPTS": "-javaagent:/x/jmx_prometheus_javaagent-1.0.jar=9404:/x/rules.yml",
        "SPARKMIRROR_HTTP": "",
    }
    metrics = ("--metrics-port", "9404", "--metrics-rules", "/x/rules.yml")
    assert launch([ENTRY, command, "f"], environ) == Command((command, *metrics, "f"))


@pytest.mark.parametrize("words", [["bash"], ["bash", "-c", "true"], ["/bin/ls", "/"], ["python3"]])
def test_another_program_takes_over(words: list[str]) -> None:
    assert launch([ENTRY, *words], CONFLUENT) == Program(tuple(words))
