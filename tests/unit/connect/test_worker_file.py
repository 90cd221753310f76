"""Checks worker files of users: settings, warnings and errors."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER
from sparkmirror.config.known_keys import EXPLAINED_MAX
from sparkmirror.config.properties import Properties, parse_properties, read_properties
from sparkmirror.config.worker_options import WORKER
from sparkmirror.connect.rest.rest_settings import rest_settings
from sparkmirror.connect.worker_file import WorkerFile, connector_warnings, worker_file
from sparkmirror.domain.errors import ConfigError, InvalidConfigError

FROM_A_DOCUMENT = Path(__file__).parents[1] / "config/conversion/data/connect-distributed.properties"
SAMPLE = """\
# The distribution's own, without its comments.
bootstrap.servers=localhost:9092
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000
#plugin.path=/usr/local/share/java
"""
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
GOOD = dict(parse_properties(SAMPLE, "sample")) | {"header.converter": BYTES}


def read(**settings: str) -> WorkerFile:
    """`_` in a name stands for a dot."""
    return worker_file(
        Properties(GOOD | {key.replace("_", "."): value for key, value in settings.items()}), {}
    )


def warnings(settings: dict[str, str]) -> tuple[str, ...]:
    return worker_file(Properties(GOOD | settings), {}).warnings


def errors(settings: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        worker_file(Properties(settings), {})
    error = caught.value
    return [str(one) for one in (error.errors if isinstance(error, InvalidConfigError) else (error,))]


def test_the_sample_of_kafkas_distribution_is_accepted() -> None:
    read = worker_file(parse_properties(SAMPLE, "sample"), {})
    assert read.settings.group_id == "connect-cluster"
    assert read.settings.offset_flush_interval_s == 10.0
    (headers,) = read.warnings
    assert headers.startswith("header.converter is not set, so for Java it is SimpleHeaderConverter, which")


def test_a_file_from_before_kafka_3_gets_warnings() -> None:
    removed, port, _headers = worker_file(read_properties(FROM_A_DOCUMENT), {}).warnings
    assert removed == (
        "internal.key.converter, internal.value.converter, internal.key.converter.schemas.enable,"
        " internal.value.converter.schemas.enable: no longer read by Kafka either (removed in Kafka 3.0)"
    )
    assert port.startswith("rest.port: no longer read by Kafka either")
    assert port.endswith("listeners=http://:8083")


def test_a_correct_file_gets_no_warnings() -> None:
    file = read(
        listeners="http://:8084",
        admin_listeners="",
        rest_advertised_host_name="one",
        producer_compression_type="zstd",
        consumer_max_poll_records="7",
        admin_retries="3",
        offset_storage_min_insync_replicas="1",
        connector_client_config_override_policy="Allowlist",
        connector_client_config_override_allowlist="acks",
        spark_master="local[2]",
        spark_executor_memory="1g",
        admin_listeners_https_ssl_keystore_location="x",
    )
    assert file.warnings == ()
    assert dict(file.spark) == {"spark.master": "local[2]", "spark.executor.memory": "1g"}
    assert file.settings.offset_topic.configs[0] == ("min.insync.replicas", "1")


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"inter.worker.signature.algorithm": "HmacSHA1"}, "accepted and unused"),
        (
            {"plugin.path": "/opt/java", "plugin.discovery": "only_scan"},
            "plugin.path, plugin.discovery: accepted",
        ),
        ({"offset.flush.intervall.ms": "1"}, "(did you mean offset.flush.interval.ms?)"),
        ({"max.poll.records": "1"}, "max.poll.records (did you mean consumer.max.poll.records?)"),
        ({"rest.host.name": "me"}, "listeners=http://me:8083"),
        ({"config.storage.partitions": "3"}, "config.storage.partitions is ignored"),
        ({"status.storage.cleanup.policy": "delete"}, "status.storage.cleanup.policy is ignored"),
        (
            {"header.converter": "org.apache.kafka.connect.json.JsonConverter"},
            "header.converter is JsonConverter",
        ),
        ({"header.converter": "com.example.Mine"}, "which is a Java class that is not known here"),
    ],
    ids=str,
)
def test_each_unused_key_gets_a_warning(settings: dict[str, str], warning: str) -> None:
    (said,) = warnings(settings)
    assert warning in said


def test_missing_bootstrap_servers_get_javas_default() -> None:
    read = worker_file(Properties({key: GOOD[key] for key in GOOD if key != "bootstrap.servers"}), {})
    assert read.properties["bootstrap.servers"] == "localhost:9092"
    assert read.warnings == ("bootstrap.servers is not set, so it is localhost:9092, as for a Java worker",)


def test_all_errors_are_reported_at_once() -> None:
    found = errors(
        {"group.id": "g", "session.timeout.ms": "soon", "security.protocol": "SASL_SSL", "producer.acks": "7"}
    )
    assert len(found) == 8
    for key in ("config.storage.topic", "offset.storage.topic", "status.storage.topic", "key.converter"):
        assert f'Missing required configuration "{key}" which has no default value.' in "".join(found)
    for text in (
        "Invalid value soon for configuration session.timeout.ms",
        "Invalid value 7 for configuration producer.acks",
        "sasl.mechanism",
    ):
        assert any(text in error for error in found)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"heartbeat.interval.ms": "10000"}, "must be lower than session.timeout.ms, 10000"),
        ({"status.storage.topic": "connect-configs"}, "is config.storage.topic too"),
        ({"rest.extension.classes": "com.example.Auth"}, "Only org.apache.kafka.connect.rest.basic.auth."),
        ({"connector.client.config.override.policy": "com.example.Mine"}, "use one of All, None, Principal"),
        ({"bootstrap.servers": "nowhere"}, "Invalid url in bootstrap.servers: nowhere"),
        ({"offset.storage.partitions": "0"}, "Value must be a positive number, or -1"),
        ({"consumer.fetch.max.bytes": "x"}, "for configuration consumer.fetch.max.bytes"),
    ],
    ids=str,
)
def test_contradictions_and_unsupported_keys_are_errors(settings: dict[str, str], error: str) -> None:
    (found,) = errors(GOOD | settings)
    assert error in found


def test_files_of_other_programs_are_refused_with_advice() -> None:
    (mirror_maker,) = errors({"clusters": "A, B"})
    assert "`sparkmirror run` takes such a file" in mirror_maker
    (standalone,) = errors({"bootstrap.servers": "b:1", "offset.storage.file.filename": "/tmp/offsets"})
    assert "connect-standalone.sh" in standalone


def test_placeholders_are_resolved_and_never_shown(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("group=mirrors\npassword=geheim\ntimeout=geheim\n", encoding="utf-8")
    file = {
        "config.providers": "file,env",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "group.id": f"${{file:{secrets}:group}}",
        "spark.ui.port": "${env:PORT}",
        "ssl.key.password": f"${{file:{secrets}:password}}",
    }
    read = worker_file(Properties(GOOD | file), {"PORT": "4040"})
    assert read.settings.group_id == "mirrors"
    assert read.spark["spark.ui.port"] == "4040"
    assert read.properties["ssl.key.password"] == "geheim"
    assert read.warnings == ()
    assert "geheim" not in repr(read)
    wrong = {
        "session.timeout.ms": f"${{file:{secrets}:timeout}}",
        "client.id": f"${{file:{secrets}:nothing}}",
        "spark.ui.port": "${env:NOTHING}",
    }
    found = errors(GOOD | file | wrong)
    assert len(found) == 3
    assert "geheim" not in "".join(found)


def every_option() -> Iterator[str]:
    yield from WORKER.names
    for client, options in (("producer", PRODUCER), ("consumer", CONSUMER), ("admin", ADMIN)):
        yield from (f"{client}.{name}" for name in options.names)
    yield from (f"listeners.https.{name}" for name in ADMIN.names if name.startswith("ssl."))
    yield from ("rest.host.name", "rest.port", "spark.master")


def said_of(worker: Properties, environment: Mapping[str, str]) -> tuple[bool, str]:
    """Whether the file can be used, and all that is said of it."""
    try:
        file = worker_file(worker, environment)
        warnings = (*file.warnings, *connector_warnings({"connector.class": "MirrorSource"}, file.properties))
        rest_settings(file.properties, environment)
    except ConfigError as error:
        return False, str(error)
    return True, "".join(warnings)


@pytest.mark.parametrize(
    "text",
    ["geheim:99999,geheim[", "geheim[=5", "http://geheim:99999/", "https://geheim:1"],
    ids=["servers", "name", "http", "https"],
)
@pytest.mark.parametrize("written", ["${env:PLANTED}", "a${env:PLANTED}("], ids=["alone", "within"])
def test_nothing_that_is_said_holds_what_a_placeholder_stands_for(text: str, written: str) -> None:
    file = GOOD | {
        "config.providers": "env",
        "config.providers.env.class": "EnvVar",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'a.Module required username="u" password="p";',
        "rest.oauthbearer.jwks.endpoint.url": "file:/etc/keys.json",
        "rest.oauthbearer.expected.issuer": "issuer",
        "rest.oauthbearer.expected.audience": "connect",
    }
    said = {
        key: said_of(Properties({**file, key: written}), {"PLANTED": text}) for key in sorted(every_option())
    }
    assert [key for key, (_, words) in said.items() if "geheim" in words] == []
    assert len([key for key, (is_usable, _) in said.items() if not is_usable]) > 50


def test_an_unknown_provider_is_an_error() -> None:
    vault = {"config.providers": "vault", "config.providers.vault.class": "com.example.VaultConfigProvider"}
    (found,) = errors(GOOD | vault)
    assert "is not a supported config provider" in found


def test_connectors_with_an_inherited_converter_get_a_warning() -> None:
    worker = Properties(GOOD)
    key, value = connector_warnings({"connector.class": "MirrorSource"}, worker)
    assert key.startswith("key.converter is not set, so for Java it is the worker's JsonConverter, which")
    assert value.endswith(f"value.converter={BYTES}")
    own = {"key.converter": BYTES, "value.converter": BYTES}
    assert connector_warnings(own, worker) == ()
    assert connector_warnings({}, Properties(own)) == ()


@pytest.mark.parametrize(
    ("key", "warning"),
    [
        (
            "topics.blacklist",
            "topics.blacklist: nothing reads this key: called topics.exclude since Kafka 2.7",
        ),
        ("clusters", "clusters: nothing reads this key"),
        ("source.cluster.max.poll.records", "write source.consumer.max.poll.records"),
        ("target.cluster.batch.size", "write target.producer.batch.size"),
        ("target.cluster.retries", "write target.producer.retries or target.admin.retries"),
        ("consumer.override.fetch.min.bytes", "write consumer.fetch.min.bytes"),
        ("admin.override.retries", "or source.admin.retries or target.admin.retries"),
        ("source.cluster.no.such.thing", "source.cluster.no.such.thing: nothing reads this key"),
    ],
)
def test_unread_keys_of_connectors_get_a_warning(key: str, warning: str) -> None:
    (said,) = connector_warnings({key: "x"}, Properties())
    assert warning in said


def test_warnings_of_a_config_with_very_many_keys_take_no_time() -> None:
    began = time.process_time()
    said = connector_warnings({f"topic.filtr.{number}": "x" for number in range(60_000)}, Properties())
    assert len(said) == EXPLAINED_MAX
    assert time.process_time() - began < 5
