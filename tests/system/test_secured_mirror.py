"""The commands between two secured clusters: one wants client certificates, the other logins."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final

from sparkmirror.clusters.ports import HOST
from sparkmirror.kafka.admin.admin import Admin
from tests.support.acls import acls, create_acls
from tests.support.broker_data import (
    append,
    config,
    configure,
    create_topic,
    end_offsets,
    grow,
    keyed_of,
    numbered,
)
from tests.support.certificates import PASSWORD, jks_of, write
from tests.support.command_lines import command_line
from tests.support.connections import connection
from tests.support.mirror import COMMAND, REPLICATION, running_mirror
from tests.support.rights_page import Mode, Side, binding, grants
from tests.support.secured_broker import CLIENT, LOGIN_PASSWORD, USER, SecuredBroker, login, secured_broker
from tests.support.waiting import await_value, patience
from tests.system.consumer_groups import commit, committed

COPIED_WITHIN_S: Final = 60.0
ENDS_WITHIN_S: Final = 120.0
GROUP: Final = "billing"
READER: Final = "User:reader"
"""Whose ACL is mirrored."""
OFTEN: Final = (
    "refresh.topics",
    "refresh.groups",
    "sync.topic.configs",
    "emit.checkpoints",
    "sync.group.offsets",
    "emit.heartbeats",
)


def cluster(alias: str, broker: SecuredBroker, listener: str, properties: dict[str, str]) -> dict[str, str]:
    servers = {"bootstrap.servers": f"{HOST}:{broker.ports[listener]}"}
    return {f"{alias}.{key}": value for key, value in (servers | properties).items()}


def logged_in(broker: SecuredBroker) -> dict[str, str]:
    return {**login("SCRAM-SHA-512"), **broker.trusting, "security.protocol": "SASL_SSL"}


def holds_a_secret(text: str) -> bool:
    return PASSWORD in text or LOGIN_PASSWORD in text


def known_by_jks(broker: SecuredBroker, folder: Path) -> dict[str, str]:
    both = write(folder / "client.p12", broker.client.pkcs12(PASSWORD, broker.authority))
    keys = jks_of(both, folder / "client.jks")
    return {**broker.trusting, "ssl.keystore.location": keys, "ssl.keystore.password": PASSWORD}


def allow(broker: SecuredBroker, principal: str, side: Side) -> None:
    """Grant what docs/rights.md lists for one principal, and nothing else."""
    modes = Mode.DEFAULT, Mode.GROUPS
    listed = [grant for grant in grants("near", "far") if grant.side is side and grant.mode in modes]
    bindings = [binding(right, principal) for grant in listed for right in grant.rights]
    with closing(Admin(connection(broker.cluster))) as admin:
        assert set(admin.create_acls(bindings).values()) == {None}


def traces(near: SecuredBroker, far: SecuredBroker) -> dict[str, bool]:
    """Return what each connector has done."""
    grown = end_offsets(far.cluster, ["near.orders"])
    return {
        "records": all(
            keyed_of(far.cluster, "near.orders", number) == keyed_of(near.cluster, "orders", number)
            for number in range(len(grown))
        ),
        "partitions": len(grown) == 2,
        "heartbeats": sum(end_offsets(far.cluster, ["heartbeats"]).values()) > 0,
        "checkpoints": sum(end_offsets(far.cluster, ["near.checkpoints.internal"]).values()) > 0,
        "ACLs": any(acl[2:4] == ("near.orders", READER) for acl in acls(far.cluster)),
        "configs": config(far.cluster, "near.orders")["max.message.bytes"] == "234567",
        "group": committed(far.cluster, GROUP, "near.orders", 1) == {0: 300},
    }


def test_secured_clusters_are_mirrored_planned_and_verified_with_least_rights(tmp_path: Path) -> None:
    with (
        secured_broker(tmp_path / "near", guarded=True) as near,
        secured_broker(tmp_path / "far", guarded=True) as far,
    ):
        allow(near, CLIENT, Side.SOURCE)
        allow(far, f"User:{USER}", Side.TARGET)
        create_topic(near.cluster.bootstrap_servers, "orders", partitions=1)
        append(near.cluster, "orders", numbered(300))
        commit(near.cluster, GROUP, "orders", {0: 300})
        create_acls(near.cluster, [("TOPIC", "LITERAL", "orders", READER, "*", "READ", "ALLOW")])
        properties = {
            "clusters": "near, far",
            **cluster("near", near, "MUTUAL", known_by_jks(near, tmp_path)),
            **cluster("far", far, "SAFE", logged_in(far)),
            "near->far.enabled": "true",
            "near->far.topics": "orders",
            "far->near.emit.heartbeats.enabled": "false",
            "near->far.sync.group.offsets.enabled": "true",
            **{f"near->far.{name}.interval.seconds": "1" for name in OFTEN},
            **REPLICATION,
            "emit.heartbeats.enabled": "true",
        }
        with running_mirror(tmp_path / "mirror", properties) as mirror:
            await_value(
                lambda: keyed_of(far.cluster, "near.orders", 0) == numbered(300),
                COPIED_WITHIN_S,
                mirror.log_text,
            )
            grow(near.cluster, "orders", 2)
            configure(near.cluster, "orders", {"max.message.bytes": "234567"})
            await_value(
                lambda: all(traces(near, far).values()),
                COPIED_WITHIN_S,
                lambda: f"{traces(near, far)}\n{mirror.log_text()}",
            )
            assert "kafka-acls" not in mirror.log_text()
            assert "unfenced" not in mirror.log_text()
            lines = [command_line(process) for process in mirror.processes()]
            assert any(lines)
            assert not [line for line in lines if holds_a_secret(line)]
            mirror.stop()
            assert not holds_a_secret(mirror.log_text() + mirror.spark_log.read_text())
            for words in (["verify"], ["plan"], ["migrate", "consumers", "--group", GROUP]):
                ran = subprocess.run(
                    [COMMAND, *words, str(mirror.file)],
                    capture_output=True,
                    text=True,
                    timeout=ENDS_WITHIN_S * patience(),
                    check=False,
                )
                assert ran.returncode == 0, ran.stdout + ran.stderr
                assert "near->far" in ran.stdout
                assert not holds_a_secret(ran.stdout + ran.stderr)
