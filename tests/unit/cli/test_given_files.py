"""Files as people write them: `plan`, `run` and `convert` read each in the same way.

Each of `given_files` is refused by all of them, with one text, or gives the same flows and findings.
"""

import logging
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sparkmirror.cli.command_runner import run_command
from sparkmirror.cli.commands.connectors.input_files import read_file
from sparkmirror.config.connector_options import SOURCE_CONNECTOR
from sparkmirror.config.file_findings import connector_findings, file_findings
from sparkmirror.config.properties import Properties
from sparkmirror.connect.validation import validate
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.settings.internal_topics import heartbeats_topic
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.settings.parsing import mirror_source_settings

FILES: Final = Path(__file__).parent / "given_files"
LEFT_OUT: Final = 1


class Accepted(NamedTuple):
    """The flows that mirror, what is said of the file, in order, and by what the flow's topics are known."""

    said: tuple[str, ...] = ()
    flows: tuple[str, ...] = ("A->B",)


NO_COMMENTS: Final = "properties files have no comments behind values, only on lines of their own"
FORMER: Final = (
    "is called {0} since Kafka 2.7: Java up to 3.9 leaves out the {1} that it lists, Kafka 4 does not. "
)
WAYS: Final = "Call it {0} to leave them out, or delete it to mirror them"


def former(name: str, what: str) -> str:
    return FORMER.format(name, what) + WAYS.format(name)


ACCEPTED: Final = {
    "plain.properties": Accepted(),
    "other-line-ends.properties": Accepted(),
    "blacklist-beside-the-same.properties": Accepted(
        ("topics.blacklist (line 6): has no effect: topics.exclude has the same value: delete it",)
    ),
    "blacklist-beside-another.properties": Accepted(
        (
            (
                "topics.blacklist (line 6): no version of Java reads this, since A->B.topics.exclude is set "
                "to another value: delete it"
            ),
        )
    ),
    "comment-behind-login.properties": Accepted(
        (f"B.sasl.jaas.config (line 6): ' #' is part of the value: {NO_COMMENTS}",)
    ),
    "comment-behind-heartbeats.properties": Accepted(
        (f"B->A.emit.heartbeats.enabled (line 6): '  # none' is part of the value: {NO_COMMENTS}",)
    ),
    "blank-behind-enabled.properties": Accepted(
        (
            (
                "A->B.enabled (line 4): the value ends in a blank, which makes it false where flows "
                "are chosen and true in the connector: the flow mirrors although it looks disabled, "
                "as in Java: delete the blank"
            ),
        )
    ),
    "producer-below-a-flow.properties": Accepted(
        (
            (
                "A->B.producer.compression.type, A->B.producer.batch.size, "
                "A->B.producer.max.request.size: has no "
                "effect on the mirrored records, only on offset syncs: write B.producer.… or "
                "A->B.producer.override.…"
            ),
        )
    ),
    "consumer-groups.properties": Accepted(
        (
            (
                "A.consumer.group.id, A->B.consumer.group.id, consumer.group.id: has no effect: "
                "MirrorMaker reads "
                "without a consumer group: lag.group.id names a group whose offsets show what is mirrored"
            ),
        )
    ),
    "settings-of-brokers.properties": Accepted(
        (
            (
                "source.transaction.state.log.replication.factor, source.offsets.topic.replication.factor, "
                "source->target.auto.create.topics.enable: nothing reads this key: a setting of "
                "brokers, which a "
                "mirror does not have"
            ),
        ),
        ("source->target",),
    ),
    "factors-below-a-cluster.properties": Accepted(
        tuple(
            f"target.{key} (line {line}): nothing reads this key: did you mean source->target.{meant}?"
            for line, key, meant in (
                (6, "checkpoints.replication.factor", "checkpoints.topic.replication.factor"),
                (7, "heartbeats.replication.factor", "heartbeats.topic.replication.factor"),
                (8, "offset-syncs.replication.factor", "offset-syncs.topic.replication.factor"),
                (9, "checkpoints.topic.replication.factor", "checkpoints.topic.replication.factor"),
            )
        ),
        ("source->target",),
    ),
    "retention-of-own-topics.properties": Accepted(
        ("heartbeats.topic.retention.ms, checkpoints.topic.retention.ms: nothing reads this key",)
    ),
    "unlisted-cluster.properties": Accepted(
        (
            (
                "A->C.enabled (line 6): nothing reads this key: C is not in clusters (A, B): did you mean "
                "A->B.enabled?"
            ),
            "C.bootstrap.servers (line 7): nothing reads this key: did you mean B.bootstrap.servers?",
        )
    ),
    "no-flow.properties": Accepted(
        (
            (
                "clusters: no flow is enabled: nothing is mirrored, only heartbeats are emitted: set "
                "A->B.enabled=true"
            ),
        ),
        (),
    ),
    "misspelled.properties": Accepted(
        (
            "A->B.topcis, B->A.topcis: nothing reads this key: did you mean A->B.topics, B->A.topics?",
            "sync.topic.acl.enabled (line 8): nothing reads this key: did you mean sync.topic.acls.enabled?",
        )
    ),
    "latin-1-password.properties": Accepted(
        (
            (
                "B.sasl.jaas.config (line 6): has characters other than ASCII, read as Latin-1, as "
                "Java does, since "
                "the file is not UTF-8 (line 6): written as \\uXXXX they mean the same in both"
            ),
        )
    ),
    "utf-8-password.properties": Accepted(
        (
            (
                "B.sasl.jaas.config (line 6): has characters other than ASCII, read as UTF-8 here; "
                "Java reads them as "
                "Latin-1: written as \\uXXXX they mean the same in both"
            ),
            (
                "B.client.id (line 7): has characters other than ASCII, read as UTF-8 here; Java "
                "reads them as "
                "Latin-1, 'mÃ¼ller': written as \\uXXXX they mean the same in both"
            ),
        )
    ),
    "latin-1-byte-in-a-comment.properties": Accepted(
        (
            (
                "B.client.id (line 7): has characters other than ASCII, read as UTF-8 here; Java "
                "reads them as "
                "Latin-1, 'mÃ¼ller': written as \\uXXXX they mean the same in both"
            ),
        )
    ),
    "empty-separator.properties": Accepted(),
    "quotes.properties": Accepted(
        (
            "A->B.topics (line 5): \"orders.*\" matches no topic, since no topic's name has '\"'",
            "topics.exclude (line 6): cluster1.*\" matches no topic, since no topic's name has '\"'",
        )
    ),
    "separator-with-a-blank.properties": Accepted(
        (
            (
                "replication.policy.separator (line 6): the separator is '_ ', blanks included, as "
                "in Java: delete "
                "the blank"
            ),
        )
    ),
    "resource.yaml": Accepted(),
    "resource-of-a-vendor.yaml": Accepted(),
    "two-policies.yaml": Accepted(),
    "two-separators.yaml": Accepted(),
}

REFUSED: Final = {
    "topics-blacklist.properties": f"topics.blacklist (line 6): {former('topics.exclude', 'topics')}",
    "groups-blacklist.properties": (
        f"A->B.groups.blacklist (line 6): {former('A->B.groups.exclude', 'groups')}"
    ),
    "configs-blacklist.properties": (
        "config.properties.blacklist (line 6): " + former("config.properties.exclude", "topic configs")
    ),
    "comment-behind-topics.properties": (
        "configuration A->B.topics (line 5): '   # all of them' is part of the value: " + NO_COMMENTS
    ),
    "comment-behind-exclude.properties": (
        "configuration A->B.topics.exclude (line 6): ' # no europe' is part of the value: " + NO_COMMENTS
    ),
    "comment-behind-groups.properties": (
        "configuration groups (line 6): '  # these two' is part of the value: " + NO_COMMENTS
    ),
    "comment-behind-configs.properties": (
        "configuration config.properties.exclude (line 6): ' # stays' is part of the value: " + NO_COMMENTS
    ),
    "comment-behind-clusters.properties": (
        "configuration clusters (line 1): is a list of names; '  # two' is part of the value: " + NO_COMMENTS
    ),
    "comment-behind-tasks.properties": (
        "configuration tasks.max (line 6): Not a number of type INT; ' # cores' is part of the value: "
        + NO_COMMENTS
    ),
    "blank-behind-heartbeats.properties": (
        "No source->target replication flows. The value of A->B.enabled ends in a blank, and counts "
        "as false, "
        "as in Java."
    ),
    "placeholder-without-provider.properties": (
        "configuration B.sasl.jaas.config (line 8): provider 'file' is not declared: "
        "config.providers must list "
        "it, and config.providers.file.class be set"
    ),
    "secrets-of-strimzi.properties": (
        "configuration B.sasl.jaas.config (line 8): provider 'strimzisecrets' is not declared: it is "
        "Strimzi's and reads Kubernetes: mount the secret, write ${strimzisecrets:FOLDER:KEY}; "
        "config.providers must list it, and config.providers.strimzisecrets.class be set to "
        "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    ),
    "config-maps-of-strimzi.properties": (
        "configuration A.bootstrap.servers (line 2): provider 'strimziconfigmaps' is not declared: it is "
        "Strimzi's and reads Kubernetes: mount the config map, write ${strimziconfigmaps:FOLDER:KEY}; "
    ),
    "provider-of-another-class.properties": (
        "Invalid value com.example.VaultConfigProvider for configuration "
        "config.providers.secrets.class (line 7)"
    ),
    "placeholder-in-a-placeholder.properties": (
        "configuration A->B.topics (line 8): placeholders can't be nested"
    ),
    "cluster-in-front.properties": (
        "prod.bootstrap.servers: is missing, and the flow prod->uat needs it; is "
        "cluster.prod.bootstrap.servers "
        "meant for it?"
    ),
    "utf-16.properties": "utf-16.properties: is UTF-16: save it as UTF-8",
    "comma-in-a-quantifier.properties": "{1,3} for configuration A->B.topics (line 5): not a usable Java",
    "star-in-front.properties": "* for configuration A->B.topics (line 5): not a usable Java",
    "empty-item.properties": "configuration A->B.topics (line 5): Items of the list must not be empty",
    "standalone.properties": (
        "offset.storage.file.filename: this file holds the settings of connect-standalone.sh, not an "
        "mm2.properties"
    ),
    "server.properties": "log.dirs: this file holds the settings of a broker, not an mm2.properties",
    "client.properties": "clusters: is missing: this file holds the settings of one client or worker",
    "template.properties": (
        "holds template marks ({{- range .Values.clusters }}, line 2): render it first, as with helm template"
    ),
    "template.yaml": "holds template marks ({{ .Values.a }}, line 9): render it first, as with helm template",
    "blanks-to-fill-in.properties": (
        "configuration B.bootstrap.servers (line 3): <target-broker> is a blank to fill in"
    ),
    "ring.yaml": (
        "spec.mirrors[0].targetCluster: is not A, which spec.connectCluster says is the target of all mirrors"
    ),
    "alias-with-separator.properties": (
        "Invalid value dc.east for configuration source.cluster.alias: 'dc.east' can't be told"
    ),
    "alias-with-slash.properties": (
        "Invalid value eu/1 for configuration source.cluster.alias: has the character '/' that no "
        "topic's name can hold, and topics of the mirror have the alias in theirs: use letters"
    ),
    "login-of-a-new-kind.properties": (
        "Invalid value SCRAM-SHA-1 for configuration B.sasl.mechanism (line 7): is not supported. These are: "
    ),
    "acknowledgements.properties": (
        "Invalid value 2 for configuration B.producer.acks (line 6): String must be one of: all, -1, 0, 1"
    ),
    "address-without-port.properties": (
        "Invalid value b for configuration B.bootstrap.servers (line 3): Invalid url in bootstrap.servers: b"
    ),
    "policy-of-their-own.properties": (
        "Invalid value com.example.CompanyPolicy for configuration replication.policy.class (line 6): "
    ),
    "connector.yaml": "holds a KafkaConnector, and the kind that is read is KafkaMirrorMaker2: ",
    "mirror-maker-1.yaml": "holds a KafkaMirrorMaker, MirrorMaker 1, which was removed: write a ",
    "deployment.yaml": "holds no resource with kind: KafkaMirrorMaker2 and its spec: it holds Deployment",
    "key-twice.yaml": "is no YAML: the key topicsPattern is there twice, line 22",
}

WITH_SECRETS: Final = "secrets-of-strimzi.json"

CONNECTORS: Final = {
    "connector.properties": "connector.class: this file holds a connector, not an mm2.properties: put it",
    **dict.fromkeys(
        (
            "connector.json",
            "key-twice.json",
            "not-a-number.json",
            "null.json",
            "blacklist.json",
            "producer.json",
            "class-with-a-blank.json",
            "filter-of-their-own.json",
            "alias-with-slash.json",
            WITH_SECRETS,
        ),
        "holds a connector as JSON, not an mm2.properties: put it on a worker",
    ),
}
"""Connectors, and what `plan` and `run` say without a worker."""

ON_A_WORKER: Final = {
    "connector.properties": (),
    "connector.json": (),
    "key-twice.json": ("tasks.max is there twice, and the last value counts, as in Java",),
    "producer.json": (
        (
            "producer.batch.size: has no effect on the mirrored records, only on offset syncs: write "
            "producer.override.…"
        ),
    ),
}
REFUSED_ON_A_WORKER: Final = {
    "not-a-number.json": "is no JSON: NaN is no value of JSON",
    "null.json": "topics.exclude: Null value can not be supplied as the configuration value",
    "blacklist.json": "topics.blacklist: is called topics.exclude since Kafka 2.7",
    "filter-of-their-own.json": "com.example.CompanyFilter",
    "alias-with-slash.json": "target.cluster.alias: has the character '/' that no topic's name can hold",
    "class-with-a-blank.json": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
}
WORKER_ONLY: Final = {"worker.properties"}


def test_each_file_has_an_expected_reading() -> None:
    expected = {*ACCEPTED, *REFUSED, *CONNECTORS, *WORKER_ONLY}
    assert {file.name for file in FILES.iterdir()} == expected
    assert {*ON_A_WORKER, *REFUSED_ON_A_WORKER, WITH_SECRETS} == CONNECTORS.keys()
    assert len(expected) >= 40


@pytest.fixture(name="told")
def _told(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> "Told":
    return Told(capsys, caplog)


class Told:
    """Runs commands, and returns the exit code and all that was said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        self._capsys = capsys
        self._caplog = caplog

    def __call__(self, *arguments: object) -> tuple[int, str]:
        self._caplog.clear()
        with self._caplog.at_level(logging.INFO):
            code = run_command([str(argument) for argument in arguments])
        return code, self._capsys.readouterr().err + self._caplog.text


@pytest.mark.parametrize("name", sorted(REFUSED | CONNECTORS))
@pytest.mark.parametrize("command", [("run",), ("plan",)])
def test_refused_before_anything_is_asked_or_started(
    name: str, command: tuple[str], told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkmirror.cli.commands.run.require_spark", pytest.fail)
    monkeypatch.setattr("sparkmirror.cli.commands.plan.command.silent_clusters", pytest.fail)
    code, said = told(*command, FILES / name)
    assert code == 2, said
    assert (REFUSED | CONNECTORS)[name] in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_convert_refuses_the_same(name: str, told: Told, tmp_path: Path) -> None:
    code, said = told("convert", FILES / name, "--to", "json", "-o", tmp_path / "out")
    assert code == 2, said
    assert REFUSED[name] in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_accepted_with_these_flows_and_findings(name: str) -> None:
    read = read_mirror_maker_file(FILES / name)
    mirroring = [str(flow.flow) for flow in read.flows if flow.source is not None]
    assert tuple(mirroring) == ACCEPTED[name].flows
    assert tuple(map(str, file_findings(read.config))) == ACCEPTED[name].said


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_what_convert_writes_is_read_alike(name: str, told: Told, tmp_path: Path) -> None:
    out = tmp_path / "mm2.properties"
    code, said = told("convert", FILES / name, "--to", "properties", "-o", out)
    assert code in (0, LEFT_OUT), said
    for sentence in ACCEPTED[name].said:
        assert sentence in said
    before, after = read_mirror_maker_file(FILES / name), read_mirror_maker_file(out)
    topics = ("orders", "orders-eu", "bills", "topcis")
    for one, other in zip(before.flows, after.flows, strict=False):
        assert one.flow == other.flow
        if one.source is not None:
            assert other.source is not None
            selected = [
                {
                    topic: each.settings.policy.format_remote_topic(each.settings.flow.source, topic)
                    for topic in topics
                    if each.settings.topic_filter.should_replicate(topic)
                }
                for each in (one.source, other.source)
            ]
            assert selected[0] == selected[1]


def parsed(name: str) -> tuple[str, ...]:
    """Read a connector as `connectors put` does, and judge it as a worker does. Raises SparkmirrorError."""
    given = read_file(FILES / name)
    worker = Properties({"group.id": "w", "bootstrap.servers": "b:9092"})
    config = {"name": "msc", **given.config}
    infos = validate(None, config, worker, {})
    errors = [text for info in infos["configs"] for text in info["value"]["errors"]]
    if errors:
        raise ConfigError("configs", None, "; ".join(errors))
    mirror_source_settings(Properties(config))
    return (*given.remarks, *map(str, connector_findings(config)))


@pytest.mark.parametrize("name", sorted(ON_A_WORKER))
def test_connectors_on_a_worker_and_converted(name: str, told: Told, tmp_path: Path) -> None:
    assert parsed(name) == ON_A_WORKER[name]
    out = tmp_path / "mm2.properties"
    code, said = told("convert", FILES / name, "--to", "properties", "-o", out)
    assert code == 0, said
    for sentence in ON_A_WORKER[name]:
        assert sentence in said
    (flow, *_) = read_mirror_maker_file(out).flows
    assert str(flow.flow) == "A->B"


@pytest.mark.parametrize("name", sorted(REFUSED_ON_A_WORKER))
def test_connectors_that_a_worker_refuses(name: str, told: Told) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of the reader, or of the worker
        parsed(name)
    assert REFUSED_ON_A_WORKER[name] in str(caught.value)
    assert isinstance(caught.value, SparkmirrorError | Exception)
    code, said = told("convert", FILES / name, "--to", "properties")
    assert code == 2, said
    assert REFUSED_ON_A_WORKER[name] in said


def test_placeholders_of_the_operator_are_kept_by_convert_which_says_what_they_need(
    told: Told, tmp_path: Path
) -> None:
    needed = (
        "it is Strimzi's and reads Kubernetes: mount the secret, write ${strimzisecrets:FOLDER:KEY}; "
        "config.providers must list it, and config.providers.strimzisecrets.class be set to "
        "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    )
    with pytest.raises(ConfigError, match="provider 'strimzisecrets' is not declared") as refused:
        parsed(WITH_SECRETS)
    assert needed in str(refused.value)
    out = tmp_path / "mm2.properties"
    code, said = told("convert", FILES / WITH_SECRETS, "--to", "properties", "-o", out)
    assert code == 0, said
    assert f"A.ssl.truststore.certificates refers to the config provider 'strimzisecrets': {needed}" in said
    code, said = told("run", out)
    assert (code, needed in said) == (2, True), said


@pytest.mark.parametrize("command", [("convert", "--to", "json"), ("connectors", "put", "msc")])
def test_a_url_in_the_place_of_a_file_is_called_that(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://worker:8083"
    with pytest.raises(SystemExit, match="2"):
        run_command([*command, url])
    said = capsys.readouterr().err
    assert f"{url} is a URL, and files are read here: curl -o NAME.json {url}/connectors/NAME" in said


def test_a_worker_s_own_file(told: Told) -> None:
    for command in ("run", "plan"):
        code, said = told(command, FILES / "worker.properties")
        assert code == 2
        assert "this file holds the settings of a Connect worker, not an mm2.properties: run it" in said
    code, said = told("convert", FILES / "worker.properties", "--to", "json")
    assert code == 2
    assert "is a Connect worker's; give the files of its connectors too" in said


def test_convert_reads_a_connector_beside_its_worker(told: Told, tmp_path: Path) -> None:
    out = tmp_path / "mm2.properties"
    code, said = told(
        "convert",
        FILES / "connector.properties",
        FILES / "worker.properties",
        "--to",
        "properties",
        "-o",
        out,
    )
    assert code == 0, said
    (flow, *_) = read_mirror_maker_file(out).flows
    assert flow.worker.offset_topic.name == "offsets"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "two-policies.yaml",
            (
                "replication.policy.class is "
                "org.apache.kafka.connect.mirror.IdentityReplicationPolicy for its "
                "MirrorSourceConnector and org.apache.kafka.connect.mirror.DefaultReplicationPolicy for its "
                "MirrorCheckpointConnector: where each has its own, groups get no offsets: the copy "
                "of orders is "
                "orders, and they are translated to A.orders. An mm2.properties, and run, take the source "
                "connector's for both"
            ),
        ),
        (
            "two-separators.yaml",
            (
                "replication.policy.separator is empty for its MirrorSourceConnector and . for its "
                "MirrorCheckpointConnector: where each has its own, no group is translated: offset "
                "syncs are written "
                "to mm2-offset-syncsBinternal and read from mm2-offset-syncs.B.internal."
            ),
        ),
    ],
)
def test_two_policies_of_one_flow_are_a_warning(
    name: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    flow = read_mirror_maker_file(FILES / name).flows[0]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any(said in warning for warning in warnings)
    assert flow.source is not None
    assert flow.checkpoint is not None
    assert flow.source.settings.policy.format_remote_topic(flow.flow.source, "orders") == "orders"
    assert flow.checkpoint.settings.policy.format_remote_topic(flow.flow.source, "orders") == "orders"


@pytest.mark.parametrize("name", ["resource.yaml", "two-policies.yaml"])
def test_without_a_heartbeat_connector_there_is_no_heartbeats_topic(name: str) -> None:
    (flow, *_) = read_mirror_maker_file(FILES / name).flows
    assert not flow.heartbeat.settings.emit
    assert heartbeats_topic(flow.flow, flow.heartbeat) is None


def test_a_resource_of_a_vendor_is_that_of_strimzi(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        flow = read_mirror_maker_file(FILES / "resource-of-a-vendor.yaml").flows[0]
    assert flow.flow == read_mirror_maker_file(FILES / "resource.yaml").flows[0].flow
    assert "apiVersion eventstreams.ibm.com/v1beta2 is read as kafka.strimzi.io/v1beta2" in caplog.text


PROVIDERS: Final = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
spec:
  connectCluster: B
  clusters:
    - alias: A
      bootstrapServers: a:9092
      authentication:
        type: custom
        sasl: true
        config:
          sasl.mechanism: PLAIN
          sasl.jaas.config: >-
            org.apache.kafka.common.security.plain.PlainLoginModule required
            username="mm2" password="${strimzifile:/opt/kafka/external/login.properties:password}";
    - alias: B
      bootstrapServers: b:9092
      authentication:
        type: custom
        sasl: true
        config:
          sasl.mechanism: PLAIN
          sasl.jaas.config: >-
            org.apache.kafka.common.security.plain.PlainLoginModule required
            username="mm2" password="${strimzidir:/opt/kafka/external:password}";
      config:
        config.providers: env
        config.providers.env.class: org.apache.kafka.common.config.provider.EnvVarConfigProvider
  mirrors:
    - sourceCluster: A
      targetCluster: B
      sourceConnector:
        tasksMax: ${strimzienv:MIRROR_TASKS}
      topicsPattern: orders.*
"""


def test_the_operator_s_own_config_providers_are_declared_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strimzi declares them for each resource, beside those that it names itself."""
    (tmp_path / "login.properties").write_text("password=hush\n")
    (tmp_path / "password").write_text("quiet")
    monkeypatch.setenv("MIRROR_TASKS", "7")
    resource = tmp_path / "mirror.yaml"
    resource.write_text(PROVIDERS.replace("/opt/kafka/external", str(tmp_path)))
    (flow, *_) = read_mirror_maker_file(resource).flows
    assert flow.source is not None
    assert flow.source.settings.tasks_max == 7
    logins = [flow.source.source_admin.sasl, flow.source.target_admin.sasl]
    assert [login and login.current().password for login in logins] == ["hush", "quiet"]


def test_a_source_connector_is_meant() -> None:
    assert read_file(FILES / "connector.json").config["connector.class"] == SOURCE_CONNECTOR
