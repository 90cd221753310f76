"""Plug-ins, their options and `validate` equal those of a real Java Connect worker, field by field."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.config.connector_options import OWN
from sparkmirror.config.properties import Properties
from sparkmirror.connect.validation import invalid_config_message, plugin_config_keys, plugins, validate
from sparkmirror.domain.connect import ConnectError
from tests.support.mirror import START_TIMEOUT_S
from tests.support.waiting import await_value
from tests.system.java_mm2 import ConnectWorker, connect_worker

DOCUMENTS: Final = Path(__file__).parents[1] / "unit" / "config" / "conversion" / "data"
PACKAGE: Final = "org.apache.kafka.connect."
SMT: Final = PACKAGE + "transforms."
SOURCE, CHECKPOINT, HEARTBEAT = "MirrorSource", "MirrorCheckpoint", "MirrorHeartbeat"
BYTES: Final = PACKAGE + "converters.ByteArrayConverter"
SECRET: Final = "${file:%s:%s}"
WORKER: Final = {
    "group.id": "validation",
    "config.storage.topic": "validation-configs",
    "offset.storage.topic": "validation-offsets",
    "status.storage.topic": "validation-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.partitions": "1",
    "key.converter": PACKAGE + "json.JsonConverter",
    "value.converter": PACKAGE + "json.JsonConverter",
    "connector.client.config.override.policy": "Allowlist",
    "connector.client.config.override.allowlist": "batch.size,sasl.jaas.config,acks,nobody.knows.it",
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}

Config = dict[str, Any]


def flow(connector: str, **settings: Any) -> Config:
    """Return a connector's config; `_` in a name stands for a dot."""
    options = {key.replace("_", "."): value for key, value in settings.items()}
    sides = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    return {"name": "one", "connector.class": f"{PACKAGE}mirror.{connector}Connector", **sides, **options}


def document(name: str) -> Config:
    content = json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))
    return dict(content.get("config", content))


CASES: Final[Mapping[str, Config]] = {
    "good": flow(SOURCE, source_cluster_bootstrap_servers="a:1", target_cluster_bootstrap_servers="b:1"),
    "by its short name": flow(SOURCE, tasks_max="4") | {"connector.class": SOURCE},
    "checkpoints": flow(CHECKPOINT, groups="a.*, b"),
    "heartbeats": flow(HEARTBEAT, emit_heartbeats_enabled="FALSE"),
    "without a name or an alias": {"connector.class": SOURCE},
    "no number": flow(SOURCE, tasks_max="many", offset_lag_max="1e3", replication_factor=""),
    "no number at all": flow(SOURCE, admin_timeout_ms="1.5", tasks_max_enforce="yes"),
    "too large a number": flow(CHECKPOINT, checkpoints_topic_replication_factor="40000"),
    "no task": flow(SOURCE, tasks_max="0"),
    "a name with a control character": flow(SOURCE, name="a\x07b"),
    "an empty name": flow(SOURCE, name=" "),
    "lists": flow(SOURCE, topics="a ,b", topics_exclude="", config_properties_exclude="x,x"),
    "lists with holes": flow(SOURCE, topics="a,,b", metric_reporters="x,x", metric_names_formats="old"),
    "an empty list": flow(SOURCE, metric_names_formats="", transforms="", predicates=" "),
    "null": flow(SOURCE, topics=None, exactly_once_support=None, enabled=None, what_is_this=None),
    "unknown policy": flow(SOURCE, replication_policy_class="com.example.Policy"),
    "unknown filters": flow(CHECKPOINT, topic_filter_class="a.B", group_filter_class="C"),
    "bad regex": flow(SOURCE, topics="[", topics_exclude="ok"),
    "bad regex of groups": flow(CHECKPOINT, groups="*"),
    "choices": flow(SOURCE, errors_tolerance="some", config_action_reload="no", security_protocol="ssl"),
    "wrong choices": flow(SOURCE, security_protocol="TLS", exactly_once_support="perhaps"),
    "required exactly once": flow(SOURCE, exactly_once_support="required"),
    "REQUIRED exactly once": flow(SOURCE, exactly_once_support="REQUIRED"),
    "exactly once of a consumer that can": flow(
        SOURCE, exactly_once_support="required", source_consumer_isolation_level="read_committed"
    ),
    "exactly once of heartbeats": flow(HEARTBEAT, exactly_once_support="required"),
    "wrong boundary": flow(SOURCE, transaction_boundary="Connector"),
    "no boundary": flow(SOURCE, transaction_boundary="whenever", transaction_boundary_interval_ms="soon"),
    "an interval": flow(SOURCE, transaction_boundary="interval", transaction_boundary_interval_ms="-1"),
    "no syncs": flow(SOURCE, offset_lag_max="1")
    | {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"},
    "checkpoints without syncs": flow(CHECKPOINT, emit_checkpoints_enabled="false")
    | {"emit.offset-syncs.enabled": "false"},
    "checkpoints turned off": flow(CHECKPOINT, enabled="false", emit_checkpoints_enabled="false"),
    "converters": flow(SOURCE, key_converter=f" {BYTES}", value_converter="ByteArrayConverter")
    | {"header.converter": BYTES, "value.converter.converter.type": "header"},
    "a wrong use of a converter": flow(SOURCE, key_converter=BYTES, key_converter_converter_type="all"),
    "unknown converter": flow(SOURCE, key_converter="com.example.AvroConverter"),
    "converters that write something else": flow(SOURCE, key_converter=PACKAGE + "json.JsonConverter"),
    "another version": flow(SOURCE, connector_plugin_version="[5.0]", tasks_max="0"),
    "this version": flow(SOURCE, connector_plugin_version="4.3.1"),
    "a converter of another version": flow(SOURCE, key_converter=BYTES, key_converter_plugin_version="9"),
    "transforms": flow(SOURCE, transforms="a,a"),
    "a transform": flow(SOURCE, transforms="a", transforms_a_field="f")
    | {"transforms.a.type": PACKAGE + "transforms.HoistField$Value"},
    "a chain": flow(SOURCE, transforms="only,mark,route,drop", predicates="eu,none,named")
    | {
        "transforms.only.type": SMT + "Filter",
        "transforms.only.predicate": "eu",
        "transforms.only.negate": "TRUE",
        "transforms.mark.type": SMT + "InsertHeader",
        "transforms.mark.header": "from",
        "transforms.mark.value.literal": "us",
        "transforms.mark.predicate": "none",
        "transforms.route.type": SMT + "RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "$1",
        "transforms.drop.type": SMT + "DropHeaders",
        "transforms.drop.headers": "a, b",
        "predicates.eu.type": SMT + "predicates.HasHeaderKey",
        "predicates.eu.name": "eu",
        "predicates.none.type": SMT + "predicates.RecordIsTombstone",
        "predicates.named.type": SMT + "predicates.TopicNameMatches",
        "predicates.named.pattern": ".*",
    },
    "a chain without what it needs": flow(SOURCE, transforms="mark,drop", predicates="eu")
    | {
        "transforms.mark.type": SMT + "InsertHeader",
        "transforms.mark.negate": "perhaps",
        "transforms.mark.predicate": "eu",
        "transforms.drop.type": SMT + "DropHeaders",
    },
    "overrides": flow(
        SOURCE,
        producer_override_batch_size=" 7",
        producer_override_linger_ms="5",
        producer_override_nobody_knows_it="x",
        producer_override_sasl_jaas_config="geheim",
        consumer_override_check_crcs="perhaps",
        admin_override_retries="3",
    ),
    "overrides of topic creation": flow(
        SOURCE, admin_override_retries="3", admin_override_acks="x", topic_creation_groups="g,g"
    ),
    "an override that no producer takes": flow(SOURCE, producer_override_acks="7"),
    "passwords": flow(SOURCE, sasl_jaas_config="geheim", ssl_key_password="geheim"),
    "a topic of its own": flow(SOURCE, offsets_storage_topic="mine"),
    "an empty topic of its own": flow(SOURCE, offsets_storage_topic=""),
    **{
        name: document(name)
        for name in ("mm2-cpc-source-0", "mm2-hbc-source-0", "mm2-msc-source-0", "mm2-msc-custom-policy")
    },
}


class Difference(NamedTuple):
    """Java's and sparkmirror's result for a key, None where the response does not have it."""

    java: tuple[str, ...] | None
    ours: tuple[str, ...] | None


NOT_FOUND: Final = "could not be found."
NULL: Final = "Null value can not be supplied as the configuration value."
PATTERN: Final = "not a usable Java regular expression"
DIFFERENCES: Final[Mapping[str, Mapping[str, Difference]]] = {
    # The error about an unknown class lists the known ones.
    "unknown policy": {"replication.policy.class": Difference((NOT_FOUND,), ("Write package.module:Class",))},
    "unknown filters": {
        "topic.filter.class": Difference((NOT_FOUND,), ("DefaultTopicFilter",)),
        "group.filter.class": Difference((NOT_FOUND,), ("DefaultGroupFilter",)),
    },
    "unknown converter": {"key.converter": Difference((NOT_FOUND,), ("Use " + BYTES,))},
    # A policy that is built in here and has no jar on this Java worker.
    "mm2-msc-custom-policy": {"replication.policy.class": Difference((NOT_FOUND,), ())},
    # Connect accepts values with which its connector then fails.
    "bad regex": {"topics": Difference((), (PATTERN,))},
    "bad regex of groups": {"groups": Difference((), (PATTERN,))},
    "an override that no producer takes": {
        "producer.override.acks": Difference((), ("must be one of: all, -1, 0, 1",))
    },
    # Java's connector does not report a null value and a converter's version.
    "null": {
        "topics": Difference(("must not be null",), ("must not be null", NULL)),
        "enabled": Difference((), (NULL,)),
    },
    "a converter of another version": {
        "key.converter.plugin.version": Difference((), ("only 4.3.1 is here",)),
    },
    # Settings that would change records, or are not supported.
    "converters that write something else": {
        "key.converter": Difference((), ("Base64",)),
        "key.converter.converter.type": Difference((), None),
        "key.converter.schemas.enable": Difference((), None),
        "key.converter.schemas.cache.size": Difference((), None),
        "key.converter.decimal.format": Difference((), None),
        "key.converter.replace.null.with.default": Difference((), None),
        "key.converter.schema.content": Difference((), None),
    },
    "a transform": {
        "transforms.a.type": Difference((), ("works on the fields of a structure",)),
        "transforms.a.plugin.version": Difference((), ()),
        "transforms.a.predicate": Difference((), None),
        "transforms.a.negate": Difference((), None),
        "transforms.a.field": Difference((), None),
    },
    "a topic of its own": {"offsets.storage.topic": Difference((), ("is not supported",))},
}
"""Intended differences by case and key. Options of sparkmirror come in addition."""


class Java:
    """Java's worker, with the status of its responses."""

    def __init__(self, worker: ConnectWorker) -> None:
        self._url = worker.url

    def ask(self, method: str, path: str, config: Config | None = None) -> tuple[int, Any]:
        body = None if config is None else json.dumps(config).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=START_TIMEOUT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture(scope="module")
def worker(target_cluster: LocalCluster) -> dict[str, str]:
    return WORKER | {"bootstrap.servers": target_cluster.bootstrap_servers}


@pytest.fixture(scope="module")
def java(worker: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    with connect_worker(tmp_path_factory.mktemp("connect"), worker) as running:
        await_value(lambda: running.ask("GET", "/connectors"), START_TIMEOUT_S, running.log_text)
        yield Java(running)


def response_here(path: str | None, config: Config, worker: Mapping[str, str]) -> tuple[int, Any]:
    """Return sparkmirror's response as the REST API formats it."""
    texts = {
        key: value if value is None or isinstance(value, str) else json.dumps(value)
        for key, value in config.items()
    }
    try:
        return 200, validate(path, texts, Properties(worker))
    except ConnectError as error:
        return error.status, {"error_code": error.status, "message": str(error)}


def by_name(infos: Any) -> dict[str, Any]:
    """Which classes there are to choose from is not compared."""
    found = {one["value"]["name"]: one for one in infos["configs"] if one["value"]["name"] not in OWN.names}
    for name, one in found.items():
        if name.startswith(("transforms.", "predicates.")) and name.endswith(".type"):
            one["value"]["recommended_values"] = []
    return found


def check_difference(key: str, expected: tuple[str, ...] | None, found: Any) -> None:
    if expected is None:
        assert found is None, key
        return
    errors = found["value"]["errors"]
    assert len(errors) == len(expected), key
    for part, error in zip(expected, errors, strict=True):
        assert part in error


@pytest.mark.parametrize("case", CASES)
def test_validation_of_a_config(case: str, java: Java, worker: dict[str, str]) -> None:
    config, differences = CASES[case], DIFFERENCES.get(case, {})
    path = config["connector.class"].rpartition(".")[2]
    status, theirs = java.ask("PUT", f"/connector-plugins/{path}/config/validate", config)
    here, ours = response_here(path, config, worker)
    assert (status, here) == (200, 200), theirs
    wanted, found = by_name(theirs), by_name(ours)
    for key, difference in differences.items():
        check_difference(key, difference.java, wanted.pop(key, None))
        check_difference(key, difference.ours, found.pop(key, None))
    assert found == wanted
    if not differences:
        assert ours["error_count"] == theirs["error_count"]
        assert ours["groups"] == theirs["groups"]
        in_order = [key for key in found if ".override." not in key and wanted[key]["definition"]]
        assert in_order == [key for key in wanted if key in in_order]
    assert ours["name"] == theirs["name"]
    assert "geheim" not in json.dumps(ours)


@pytest.mark.parametrize(
    ("path", "config"),
    [
        (SOURCE, {"name": "one"}),
        ("FileStreamSink", {"connector.class": "FileStreamSink"}),
        ("Nothing", {"connector.class": "com.example.Nothing", "name": "one"}),
    ],
)
def test_configs_that_cannot_be_validated(
    path: str, config: Config, java: Java, worker: dict[str, str]
) -> None:
    """Java answers 500 instead of 400, as it does not unwrap the error; the message has its class."""
    status, theirs = java.ask("PUT", f"/connector-plugins/{path}/config/validate", config)
    here, ours = response_here(path, config, worker)
    assert (status, here) == (500, 400)
    shared = theirs["message"].partition("BadRequestException: ")[2].partition("PluginDesc{")[0]
    assert shared
    assert ours["message"].startswith(shared)


def test_class_that_differs_from_the_path_is_refused_as_in_java(java: Java, worker: dict[str, str]) -> None:
    asked = java.ask("PUT", f"/connector-plugins/{HEARTBEAT}/config/validate", flow(SOURCE))
    assert response_here(HEARTBEAT, flow(SOURCE), worker) == asked


def test_message_of_a_refused_config_is_javas(java: Java, worker: dict[str, str]) -> None:
    config = flow(SOURCE, tasks_max="many", errors_tolerance="some", producer_override_linger_ms="1")
    status, theirs = java.ask("PUT", "/connectors/one/config", config)
    assert status == 400
    _, ours = response_here(None, config, worker)
    assert invalid_config_message(ours) == theirs["message"]


@pytest.mark.parametrize("connectors_only", [True, False])
def test_plugins_are_listed(java: Java, *, connectors_only: bool) -> None:
    _, theirs = java.ask("GET", f"/connector-plugins?connectorsOnly={str(connectors_only).lower()}")
    ours = plugins(connectors_only=connectors_only)
    # Converters that would change records, transformations and predicates are not supported here.
    assert ours == [plugin for plugin in theirs if plugin in ours]
    assert not connectors_only or ours == theirs


@pytest.mark.parametrize("plugin", [SOURCE, CHECKPOINT, HEARTBEAT, SOURCE + "Connector", BYTES, "ByteArray"])
def test_options_of_a_plugin_are_listed(java: Java, plugin: str) -> None:
    status, theirs = java.ask("GET", f"/connector-plugins/{plugin}/config")
    assert status == 200
    assert [key for key in plugin_config_keys(plugin) if key["name"] not in OWN.names] == theirs


@pytest.mark.parametrize(
    "plugin", ["Nothing", "mirrorsource", "org.apache.kafka.connect.mirror.MirrorSource"]
)
def test_options_of_an_unknown_plugin_are_refused_as_in_java(java: Java, plugin: str) -> None:
    status, theirs = java.ask("GET", f"/connector-plugins/{plugin}/config")
    with pytest.raises(ConnectError) as caught:
        plugin_config_keys(plugin)
    assert (caught.value.status, str(caught.value)) == (status, theirs["message"])


def test_placeholders_are_validated_by_their_values(
    java: Java, worker: dict[str, str], tmp_path: Path
) -> None:
    """Java also shows the resolved values, sparkmirror does not."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("tasks=0\nlocation=target\n", encoding="utf-8")
    config = flow(SOURCE, tasks_max=SECRET % (secrets, "tasks"))
    config |= {"offset-syncs.topic.location": SECRET % (secrets, "location")}
    _, theirs = java.ask("PUT", f"/connector-plugins/{SOURCE}/config/validate", config)
    _, ours = response_here(SOURCE, config, worker)
    assert ours["error_count"] == theirs["error_count"] == 1
    wanted, found = by_name(theirs), by_name(ours)
    shown = {key for key in wanted if wanted[key] != found[key]}
    assert shown == {"tasks.max", "offset-syncs.topic.location"}
    assert {wanted[key]["value"]["value"] for key in shown} == {"0", "target"}
    assert {found[key]["value"]["value"] for key in shown} == {config[key] for key in shown}
