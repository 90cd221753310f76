import json
from typing import Any

import pytest

from sparkmirror.config.conversion.forms import File, Form, read, written
from sparkmirror.config.conversion.model import Kind, MirroredFlow, Remarks
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.domain.errors import ConfigError

TARGET = {
    "alias": "b",
    "bootstrapServers": "b:9092",
    "groupId": "group",
    "configStorageTopic": "configs",
    "offsetStorageTopic": "offsets",
    "statusStorageTopic": "status",
}
SOURCE = {"alias": "a", "bootstrapServers": "a:9092"}


def resource(spec: dict[str, Any], version: str = "v1") -> str:
    return json.dumps(
        {"apiVersion": f"kafka.strimzi.io/{version}", "kind": "KafkaMirrorMaker2", "spec": spec}
    )


def v1(target: dict[str, Any] | None = None, **mirror: Any) -> str:
    mirrors = [{"source": SOURCE, "sourceConnector": {}, **mirror}]
    return resource({"target": {**TARGET, **(target or {})}, "mirrors": mirrors})


def flow(text: str) -> tuple[MirroredFlow, list[str]]:
    remarks = Remarks()
    (found,) = read([File("mm2.yaml", text)], remarks).flows
    return found, [str(remark) for remark in remarks]


def in_properties(text: str) -> tuple[Properties, list[str]]:
    remarks = Remarks()
    (file,) = written(read([File("mm2.yaml", text)], remarks), Form.PROPERTIES, remarks)
    return parse_properties(file.text, file.name), [str(remark) for remark in remarks]


def test_connectors_as_the_operator_makes_them() -> None:
    found, said = flow(
        v1(
            sourceConnector={"tasksMax": 5, "version": "4.3", "config": {"replication.factor": -1}},
            checkpointConnector={"config": {"sync.group.offsets.enabled": True, "topics": "overruled"}},
            topicsPattern="orders",
            groupsExcludePattern="x.*",
        )
    )
    assert said == []
    clusters = {"source.cluster.bootstrap.servers": "a:9092", "target.cluster.bootstrap.servers": "b:9092"}
    assert found.connectors[Kind.SOURCE] == {
        **clusters,
        "tasks.max": "5",
        "connector.plugin.version": "4.3",
        "replication.factor": "-1",
        "topics": "orders",
    }
    assert found.connectors[Kind.CHECKPOINT] == {
        **clusters,
        "sync.group.offsets.enabled": "true",
        "topics": "orders",
        "groups.exclude": "x.*",
    }
    assert Kind.HEARTBEAT not in found.connectors
    assert found.name == "a->b.MirrorSourceConnector"
    assert found.worker == {
        "group.id": "group",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "status",
    }


def test_resources_before_v1() -> None:
    found, said = flow(
        resource(
            {
                "connectCluster": "b",
                "clusters": [
                    SOURCE,
                    {"alias": "b", "bootstrapServers": "b:9092", "config": {"group.id": "mine"}},
                ],
                "mirrors": [
                    {
                        "sourceCluster": "a",
                        "targetCluster": "b",
                        "sourceConnector": {},
                        "heartbeatConnector": {"config": {"heartbeats.topic.replication.factor": 1}},
                        "topicsBlacklistPattern": "old",
                        "groupsBlacklistPattern": "g",
                    }
                ],
            },
            "v1beta2",
        )
    )
    assert said == []
    assert found.worker["group.id"] == "mine"
    assert found.worker["offset.storage.topic"] == "mirrormaker2-cluster-offsets"
    assert found.connectors[Kind.HEARTBEAT]["heartbeats.topic.replication.factor"] == "1"
    assert found.connectors[Kind.SOURCE]["topics.exclude"] == "old"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({}, r"spec\.target: is missing"),
        ({"target": TARGET}, r"spec\.mirrors: is missing"),
        ({"target": TARGET, "mirrors": {}}, r"spec\.mirrors: is no list"),
        ({"target": TARGET, "mirrors": [{}]}, r"spec\.mirrors\[0\]\.source: is missing"),
        (
            {"target": TARGET, "mirrors": [{"sourceCluster": "z"}]},
            "z .*sourceCluster: is none of spec.clusters",
        ),
        ({"target": TARGET, "mirrors": [{"source": SOURCE}] * 2}, "have one source twice"),
        (
            {"target": TARGET, "mirrors": [{"source": SOURCE, "targetCluster": "c"}]},
            "targetCluster: is not b, which spec.target says is the target of all mirrors",
        ),
        ({"connectCluster": "z", "mirrors": []}, r"z .*spec\.connectCluster: is none"),
        ({"target": "b", "mirrors": []}, r"spec\.target: is no mapping"),
        ({"target": {**TARGET, "alias": ["b"]}, "mirrors": []}, r"spec\.target\.alias: is no text"),
    ],
)
def test_a_resource_that_the_operator_refuses_is_refused_with_its_path(
    spec: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigError, match=rf"mm2\.yaml: .*{reason}|{reason}") as caught:
        flow(resource(spec))
    assert "mm2.yaml" in str(caught.value)


@pytest.mark.parametrize("group", ["eventstreams.ibm.com", "ibmevents.ibm.com", "kafka.amq.example.com"])
def test_vendors_publish_the_resource_under_their_own_group(group: str) -> None:
    expected, said = flow(v1())
    found, noted = flow(v1().replace("kafka.strimzi.io/v1", f"{group}/v1"))
    assert found == expected
    assert noted == [f"apiVersion {group}/v1 is read as kafka.strimzi.io/v1", *said]


@pytest.mark.parametrize("form", [{"state": "stopped"}, {"state": "paused"}, {"pause": True}])
def test_a_connector_that_does_not_run_there_does_not_run_here(form: dict[str, Any]) -> None:
    found, said = flow(v1(checkpointConnector=form))
    assert list(found.connectors) == [Kind.SOURCE]
    assert len(said) == 1
    assert said[0].startswith("left out: spec.mirrors[0].checkpointConnector: is ")


def test_a_field_without_counterpart_is_named_by_its_path() -> None:
    text = resource(
        {
            "version": "4.3.1",
            "replicas": 3,
            "target": {**TARGET, "config": {"rest.advertised.port": 1, "consumer.x": 1}},
            "mirrors": [
                {
                    "source": {**SOURCE, "config": {"max.poll.records": 5}},
                    "sourceConnector": {
                        "autoRestart": {"enabled": True},
                        "listOffsets": {"toConfigMap": {"name": "x"}},
                        "config": {"name": "x", "topiks": "t"},
                    },
                }
            ],
            "template": {"pod": {}},
            "rack": {"topologyKey": "zone"},
        }
    )
    _, said = flow(text)
    assert said == [
        "spec.target.config.rest.advertised.port: the operator ignores it",
        "nothing reads spec.mirrors[0].source.config.max.poll.records",
        "spec.mirrors[0].sourceConnector.config.name: the operator ignores it",
        "spec.mirrors[0].sourceConnector.config: topiks: nothing reads this key: did you mean topics?",
        "spec.mirrors[0].sourceConnector.autoRestart: failed tasks are always restarted",
        "left out: spec.template: has no counterpart outside of the operator",
        "left out: spec.rack: has no counterpart outside of the operator",
        "left out: spec.mirrors[0].sourceConnector.listOffsets: has no counterpart outside of the operator",
    ]


def test_secrets_become_references() -> None:
    secured = {
        **SOURCE,
        "tls": {
            "trustedCertificates": [
                {"secretName": "ca", "certificate": "ca.crt"},
                {"secretName": "other", "certificate": "ca.crt"},
            ]
        },
        "authentication": {
            "type": "scram-sha-256",
            "username": "me",
            "passwordSecret": {"secretName": "mine", "password": "word"},
        },
    }
    found, said = in_properties(v1(source=secured))
    assert found.under("a.") == {
        "bootstrap.servers": "a:9092",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": (
            "${strimzisecrets:/mnt/secrets/ca:ca.crt}\n${strimzisecrets:/mnt/secrets/other:ca.crt}"
        ),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="me" password="${strimzisecrets:/mnt/secrets/mine:word}";',
    }
    assert found["config.providers"] == "strimzisecrets"
    assert said == [
        f"secret {name} is expected to be mounted at /mnt/secrets/{name}" for name in ("ca", "other", "mine")
    ]


def test_what_the_operator_reads_from_kubernetes_is_read_from_where_it_is_mounted() -> None:
    source = {**SOURCE, "config": {"ssl.truststore.certificates": "${strimzisecrets:kafka/ca:ca.crt}"}}
    connector = {
        "config": {
            "offset.lag.max": "${strimziconfigmaps:kafka/limits:lag}",
            "sync.topic.configs.enabled": "${strimzienv:SYNCS}",
        }
    }
    found, said = in_properties(v1(source=source, sourceConnector=connector))
    assert found["a.ssl.truststore.certificates"] == "${strimzisecrets:/mnt/secrets/ca:ca.crt}"
    assert found["a->b.offset.lag.max"] == "${strimzisecrets:/mnt/secrets/limits:lag}"
    assert found["a->b.sync.topic.configs.enabled"] == "${strimzienv:SYNCS}"
    assert found["config.providers"] == "strimzienv,strimzisecrets"
    assert said == [
        "secret ca is expected to be mounted at /mnt/secrets/ca",
        "config map limits is expected to be mounted at /mnt/secrets/limits",
    ]


def test_no_reference_names_all_keys_of_a_secret() -> None:
    source = {**SOURCE, "config": {"ssl.truststore.certificates": "${strimzisecrets:kafka/ca:*.crt}"}}
    with pytest.raises(ConfigError, match="no config provider reads by pattern: name the key"):
        in_properties(v1(source=source))


def test_a_secret_that_no_reference_expresses_is_named() -> None:
    by_pattern = {"trustedCertificates": [{"secretName": "ca", "pattern": "*.crt"}]}
    unknown = {"type": "oauth", "clientSecret": {"secretName": "s", "key": "k"}}
    found, said = in_properties(v1(source={**SOURCE, "tls": by_pattern, "authentication": unknown}))
    assert found["a.security.protocol"] == "SSL"
    assert "ssl.truststore.certificates" not in " ".join(found)
    path = "left out: spec.mirrors[0].source"
    assert said == [
        (
            f"{path}.tls.trustedCertificates[0]: the certificates of secret ca that match *.crt; no config"
            " provider reads by pattern, so write certificate: and its name instead"
        ),
        f"{path}.authentication: authentication of type oauth has no counterpart here",
    ]


@pytest.mark.parametrize(
    ("authentication", "settings"),
    [
        (
            {
                "type": "tls",
                "certificateAndKey": {"secretName": "me", "certificate": "me.crt", "key": "me.key"},
            },
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": "${strimzisecrets:/mnt/secrets/me:me.crt}",
                "ssl.keystore.key": "${strimzisecrets:/mnt/secrets/me:me.key}",
            },
        ),
        (
            {
                "type": "custom",
                "sasl": True,
                "config": {"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": "iam required;"},
            },
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": "iam required;",
            },
        ),
        (
            {
                "type": "plain",
                "username": 'o"reilly\\',
                "passwordSecret": {"secretName": "me", "password": "word"},
            },
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required"
                ' username="o\\"reilly\\\\" password="${strimzisecrets:/mnt/secrets/me:word}";',
            },
        ),
    ],
)
def test_authentication_becomes_settings_of_clients(
    authentication: dict[str, Any], settings: dict[str, str]
) -> None:
    found, _ = in_properties(v1(source={**SOURCE, "tls": {}, "authentication": authentication}))
    assert found.under("a.") == {"bootstrap.servers": "a:9092", **settings}


def test_a_resource_is_only_read() -> None:
    with pytest.raises(ConfigError, match=r"strimzi .*is a form that is only read"):
        written(read([File("mm2.yaml", v1())], Remarks()), Form.STRIMZI, Remarks())
