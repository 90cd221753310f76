"""Conversion to another form and back changes no value that a mirror uses."""

import json
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkmirror.config.conversion.forms import File, Form, read, written
from sparkmirror.config.conversion.mirror_maker_properties import properties_text
from sparkmirror.config.conversion.model import Kind, MirroredFlow, Remarks
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Flow
from tests.unit.config.conversion.effective import effective

BOOLEANS: Final = st.sampled_from(["true", "false"])
MILLISECONDS: Final = st.integers(1000, 100_000).map(str)
NAMES: Final = st.sampled_from([".*", "orders", "a.*, b\\.c", "x:=#!\\\\d", " é"])
CLASSES: Final = st.sampled_from(["DefaultReplicationPolicy", "IdentityReplicationPolicy"]).map(
    "org.apache.kafka.connect.mirror.{}".format
)

CLIENTS: Final = {
    "consumer.fetch.max.bytes": MILLISECONDS,
    "consumer.isolation.level": st.sampled_from(["read_committed", "read_uncommitted"]),
    "producer.acks": st.sampled_from(["1", "all"]),
    "producer.request.timeout.ms": MILLISECONDS,
    "admin.request.timeout.ms": MILLISECONDS,
    "consumer.client.id": st.just("reader"),
}
SECURITY: Final = {
    "security.protocol": st.sampled_from(["PLAINTEXT", "SASL_SSL"]),
    "sasl.mechanism": st.just("PLAIN"),
    "ssl.truststore.location": st.just("/trust.jks"),
    "consumer.security.protocol": st.just("SSL"),
    "producer.ssl.truststore.location": st.just("/other.jks"),
}
WORKER: Final = {
    "offset.flush.interval.ms": MILLISECONDS,
    "offset.storage.replication.factor": st.just("1"),
    "offset.storage.topic": st.just("connect-offsets"),
    "offset.storage.segment.bytes": MILLISECONDS,
    "exactly.once.source.support": st.just("enabled"),
    "key.converter": st.just("org.apache.kafka.connect.json.JsonConverter"),
}
CONNECTORS: Final = {
    "topics": NAMES,
    "topics.exclude": NAMES,
    "groups": NAMES,
    "tasks.max": st.integers(1, 9).map(str),
    "replication.factor": st.just("-1"),
    "replication.policy.class": CLASSES,
    "replication.policy.separator": st.sampled_from([" _ ", "-"]),
    "sync.topic.acls.enabled": BOOLEANS,
    "sync.group.offsets.enabled": BOOLEANS,
    "emit.heartbeats.enabled": BOOLEANS,
    "emit.checkpoints.enabled": BOOLEANS,
    "emit.heartbeats.interval.seconds": MILLISECONDS,
    "offset-syncs.topic.location": st.sampled_from(["source", "target"]),
    "on.data.loss": st.just("fail"),
}
FLOW: Final = {
    "enabled": BOOLEANS,
    "name": st.sampled_from(["renamed", "mm2-msc"]),
    "use.defaults.from": st.just("source"),
    "producer.override.linger.ms": st.just("7"),
    "producer.override.acks": st.just("1"),
    "source.consumer.fetch.max.bytes": MILLISECONDS,
    "target.admin.request.timeout.ms": MILLISECONDS,
    "consumer.security.protocol": st.just("SASL_PLAINTEXT"),
    "source.cluster.sasl.mechanism": st.just("GSSAPI"),
    "header.converter": st.just("org.example.Converter"),
    "emit.offset-syncs.enabled": st.just("false"),
}

LOGIN: Final = {
    "sasl.jaas.config": 'org.example.Module required username="a" password="b" useTicketCache=true;',
    "sasl.kerberos.service.name": "kafka",
}

Choices = Mapping[str, st.SearchStrategy[str]]


def some(choices: Choices) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional=dict(choices))


@st.composite
def properties(draw: st.DrawFn, cluster: Choices, top: Choices) -> Properties:
    aliases = draw(st.sampled_from([["A", "B"], ["A", "B", "C"], ["us", "us.west", "source"]]))
    given = {"clusters": ", ".join(aliases)} | LOGIN | draw(some(top))
    for alias in aliases:
        settings = {"bootstrap.servers": f"{alias}-1:9092"} | draw(some(cluster))
        given |= {f"{alias}.{key}": value for key, value in settings.items()}
    for source in aliases:
        for target in aliases:
            is_first = [source, target] == aliases[:2]
            if source != target and (is_first or draw(st.booleans())):
                own = draw(some({**CONNECTORS, **FLOW, **CLIENTS}))
                given |= {f"{source}->{target}.{key}": value for key, value in own.items()}
    return Properties(given)


def through(form: Form, given: Properties) -> tuple[Properties, list[str]]:
    """To that form, back, and what was said of it."""
    remarks = Remarks()
    there = written(read([File("mm2.properties", properties_text(given))], remarks), form, remarks)
    (back,) = written(read(there, remarks), Form.PROPERTIES, remarks)
    return parse_properties(back.text, back.name), [remark.text for remark in remarks if remark.left_out]


def expected(given: Properties) -> dict[str, object]:
    try:
        return effective(given)
    except ConfigError:
        assume(False)  # no flow at all
        raise


@settings(max_examples=10, deadline=None)
@given(properties({**CLIENTS, **SECURITY, **WORKER}, {**CONNECTORS, **WORKER, **SECURITY}))
def test_properties_stay_what_they_are(given: Properties) -> None:
    before = expected(given)
    back, left_out = through(Form.PROPERTIES, given)
    assert effective(back) == before
    assert left_out == []


@settings(max_examples=10, deadline=None)
@given(properties({**CLIENTS, **SECURITY}, {**CONNECTORS, **SECURITY}))
def test_properties_to_json_and_back(given: Properties) -> None:
    before = expected(given)
    back, left_out = through(Form.JSON, given)
    assert effective(back) == before
    assert left_out == []


CLUSTER_SECTION: Final[st.SearchStrategy[dict[str, Any]]] = st.sampled_from(
    [
        {},
        {"tls": {}},
        {"tls": {"trustedCertificates": [{"secretName": "ca", "certificate": "ca.crt"}]}},
        {
            "tls": {"trustedCertificates": [{"secretName": name, "certificate": "ca.crt"} for name in "ab"]},
            "authentication": {
                "type": "tls",
                "certificateAndKey": {"secretName": "me", "certificate": "me.crt", "key": "me.key"},
            },
        },
        {
            "authentication": {
                "type": "scram-sha-512",
                "username": 'o"reilly\\',
                "passwordSecret": {"secretName": "me", "password": "password"},
            },
            "config": {"ssl.endpoint.identification.algorithm": ""},
        },
        {
            "tls": {},
            "authentication": {
                "type": "custom",
                "sasl": True,
                "config": {"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": "iam required;"},
            },
        },
    ]
)
CONNECTOR_SECTION: Final = st.fixed_dictionaries(
    {},
    optional={
        "tasksMax": st.integers(1, 9),
        "config": st.fixed_dictionaries(
            {"tasks.max.enforce": BOOLEANS},
            optional={
                "admin.timeout.ms": MILLISECONDS,
                "consumer.fetch.max.bytes": MILLISECONDS,
                "producer.override.acks": st.just("1"),
                "password": st.just("${file:/a.properties:b}"),
            },
        ),
    },
)


@st.composite
def strimzi_resource(draw: st.DrawFn) -> dict[str, Any]:
    connector = draw(CONNECTOR_SECTION)
    patterns = draw(some({"topicsPattern": NAMES, "groupsPattern": NAMES, "topicsExcludePattern": NAMES}))
    sources = draw(st.sampled_from([["a"], ["a", "b.c"]]))
    mirrors = [
        {
            "source": {"alias": alias, "bootstrapServers": f"{alias}:9092", **draw(CLUSTER_SECTION)},
            "sourceConnector": connector,
            **({"checkpointConnector": connector} if draw(st.booleans()) else {}),
            **{key: value for key, value in patterns.items() if key != "groupsPattern"},
        }
        for alias in sources
    ]
    for mirror in mirrors:
        if "checkpointConnector" in mirror and "groupsPattern" in patterns:
            mirror["groupsPattern"] = patterns["groupsPattern"]
    section = draw(CLUSTER_SECTION)
    worker = draw(
        some({"offset.storage.replication.factor": st.just("-1"), "offset.flush.interval.ms": MILLISECONDS})
    )
    providers = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    config = {**section.get("config", {}), **worker, **(providers if "password" in str(connector) else {})}
    target = {
        "alias": "t",
        "bootstrapServers": "t:9092",
        "groupId": "group",
        "configStorageTopic": "configs",
        "offsetStorageTopic": "offsets",
        "statusStorageTopic": "status",
        **section,
        **({"config": config} if config else {}),
    }
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "mirror-a-to-t" if len(sources) == 1 else "mirror-all-to-t"},
        "spec": {"replicas": 1, "target": target, "mirrors": mirrors},
    }


@settings(max_examples=20, deadline=None)
@given(strimzi_resource())
def test_a_resource_keeps_its_flows_in_properties(resource: dict[str, object]) -> None:
    remarks = Remarks()
    given = read([File("mirror-maker-2.yaml", json.dumps(resource))], remarks)
    there = written(given, Form.PROPERTIES, remarks)
    back = read(there, remarks)
    assert [_said(flow) for flow in back.flows] == [_said(flow) for flow in given.flows]
    assert [remark.text for remark in remarks if remark.left_out] == []


def _said(flow: MirroredFlow) -> tuple[Flow, dict[Kind, dict[str, str]], str | None, dict[str, str]]:
    """All of a flow but the worker's defaults, which properties don't repeat."""
    worker = {key: value for key, value in flow.worker.items() if not key.startswith("config.providers")}
    return flow.flow, {kind: dict(one) for kind, one in flow.connectors.items()}, flow.name, worker
