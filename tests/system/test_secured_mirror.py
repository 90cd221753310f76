"""The commands between two secured clusters: one wants client certificates, the other logins."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from tests.support.broker_data import append, create_topic, keyed_of, numbered
from tests.support.certificates import PASSWORD, jks_of, write
from tests.support.mirror import COMMAND, REPLICATION, running_mirror
from tests.support.secured_broker import LOGIN_PASSWORD, SecuredBroker, login, secured_broker
from tests.support.waiting import await_value

COPIED_WITHIN_S: Final = 60.0
ENDS_WITHIN_S: Final = 120.0

pytestmark = pytest.mark.xdist_group("secured")


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


def test_secured_clusters_are_mirrored_planned_and_verified(tmp_path: Path) -> None:
    with secured_broker(tmp_path / "near") as near, secured_broker(tmp_path / "far") as far:
        create_topic(near.cluster.bootstrap_servers, "orders", partitions=1)
        expected = numbered(300)
        append(near.cluster, "orders", expected)
        properties = {
            "clusters": "near, far",
            **cluster("near", near, "MUTUAL", known_by_jks(near, tmp_path)),
            **cluster("far", far, "SAFE", logged_in(far)),
            "near->far.enabled": "true",
            "near->far.topics": "orders",
            **REPLICATION,
        }
        with running_mirror(tmp_path / "mirror", properties) as mirror:
            await_value(
                lambda: keyed_of(far.cluster, "near.orders", 0) == expected, COPIED_WITHIN_S, mirror.log_text
            )
            lines = [" ".join(process.cmdline()) for process in mirror.processes()]
            assert lines
            assert not [line for line in lines if holds_a_secret(line)]
            mirror.stop()
            assert not holds_a_secret(mirror.log_text() + mirror.spark_log.read_text())
            for command in ("verify", "plan"):
                ran = subprocess.run(
                    [COMMAND, command, str(mirror.file)],
                    capture_output=True,
                    text=True,
                    timeout=ENDS_WITHIN_S,
                    check=False,
                )
                assert ran.returncode == 0, ran.stdout + ran.stderr
                assert "near->far" in ran.stdout
                assert not holds_a_secret(ran.stdout + ran.stderr)
