"""Checks a mirror with one flow that can reach its source, and many that can not, each for its own reason.

No part of `make test`, which has each reason by itself (`tests/contract/test_tls.py`, `test_sasl.py`):
`python -m pytest tests/system/check_refused_logins.py`, a minute.
"""

import datetime as dt
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.clusters.ports import HOST
from tests.support import certificates
from tests.support.broker_data import append, create_topic, keyed_of, numbered
from tests.support.certificates import PASSWORD, issued, write
from tests.support.mirror import COMMAND, running_mirror
from tests.support.secured_broker import LOGIN_PASSWORD, SecuredBroker, login, secured_broker
from tests.support.waiting import await_value

COPIED_WITHIN_S: Final = 90.0
TOLD_WITHIN_S: Final = 15.0
"""The aim is 5 s; a busy machine may need longer."""
ENDS_WITHIN_S: Final = 120.0
TOPIC: Final = "orders"


class Row(NamedTuple):
    """The way in which a source is reached, and what is said of it."""

    listener: str
    properties: Mapping[str, str]
    said: str
    host: str = HOST
    is_of_a_store: bool = False
    """It is told by the setting and the file, not by the address, as no broker was asked."""


def rows(broker: SecuredBroker, folder: Path) -> dict[str, Row]:
    """By the source's alias."""
    foreign = certificates.authority("foreign")
    strange = write(folder / "foreign.pem", foreign.certificate_pem())

    def keys(name: str, identity: certificates.Identity) -> Mapping[str, str]:
        file = write(folder / f"{name}.pem", identity.key_pem() + identity.certificate_pem())
        return {**broker.trusting, "ssl.keystore.type": "PEM", "ssl.keystore.location": file}

    store = write(folder / "client.p12", broker.client.pkcs12(PASSWORD, broker.authority))
    stored = {**broker.trusting, "ssl.keystore.location": store}
    refused = "refused the client certificate of ssl.keystore.location: "
    plain_over_tls = {**login("SCRAM-SHA-256"), **broker.trusting, "security.protocol": "SASL_SSL"}
    return {
        "authority": Row(
            "TLS",
            {**broker.trusting, "ssl.truststore.location": strange},
            f"has a certificate that {strange} does not trust",
        ),
        "name": Row("TLS", broker.trusting, f"has a certificate for {HOST}, not for localhost", "localhost"),
        "missing": Row("MUTUAL", broker.trusting, "wants a client certificate: set ssl.keystore.location"),
        "expired": Row("MUTUAL", keys("expired", issued(broker.authority, "client", days=-1)), refused),
        "foreign": Row("MUTUAL", keys("stranger", issued(foreign, "client")), refused),
        "password": Row(
            "LOGIN",
            login("SCRAM-SHA-512", password="wrong word"),
            "refused the login of alice by SCRAM-SHA-512 (",
        ),
        "mechanism": Row(
            "SAFE",
            plain_over_tls,
            "does not offer SCRAM-SHA-256 but PLAIN, SCRAM-SHA-512: set sasl.mechanism",
        ),
        "nologin": Row("LOGIN", {}, "If it wants a login, set security.protocol=SASL_PLAINTEXT"),
        "notls": Row("TLS", {}, "speaks TLS: set security.protocol=SSL"),
        "storeword": Row(
            "MUTUAL",
            {**stored, "ssl.keystore.password": "wrong word"},
            f"{store} for configuration ssl.keystore.location: It can't be opened",
            is_of_a_store=True,
        ),
        "storetype": Row(
            "MUTUAL",
            {**stored, "ssl.keystore.type": "PEM"},
            f"PEM for configuration ssl.keystore.type: {store} is no PEM file: set it to JKS or PKCS12",
            is_of_a_store=True,
        ),
        "tls": Row("PLAINTEXT", broker.trusting, "set security.protocol=PLAINTEXT instead of SSL"),
    }


def properties(broker: SecuredBroker, found: Mapping[str, Row]) -> dict[str, str]:
    good = Row("PLAINTEXT", {}, "")
    made = {"clusters": ", ".join(["good", *found, "far"]), "heartbeats.replication.enabled": "false"}
    for alias, row in {"good": good, "far": good, **found}.items():
        made[f"{alias}.bootstrap.servers"] = f"{row.host}:{broker.ports[row.listener]}"
        made |= {f"{alias}.{key}": value for key, value in row.properties.items()}
        if alias != "far":
            made |= {f"{alias}->far.enabled": "true", f"{alias}->far.topics": TOPIC}
    return made


def test_one_line_tells_each_reason_and_another_flow_copies(tmp_path: Path) -> None:
    with secured_broker(tmp_path / "broker") as broker:
        found = rows(broker, tmp_path)
        create_topic(broker.cluster.bootstrap_servers, TOPIC, partitions=1)
        append(broker.cluster, TOPIC, numbered(100))
        with running_mirror(tmp_path / "mirror", properties(broker, found)) as mirror:
            began = time_of(mirror.await_log("flows: "))
            for alias, row in found.items():
                line = mirror.await_log(rf"\[{alias}->far.*{re.escape(row.said)}")
                print(f"{alias}: {time_of(line) - began:.1f} s: {line}")  # noqa: T201 - what it is run for
                assert row.is_of_a_store or f"{row.host}:{broker.ports[row.listener]}" in line
                assert time_of(line) - began < TOLD_WITHIN_S, line
            await_value(
                lambda: keyed_of(broker.cluster, f"good.{TOPIC}", 0) == numbered(100),
                COPIED_WITHIN_S,
                mirror.log_text,
            )
            append(broker.cluster, TOPIC, numbered(10, 100))
            await_value(
                lambda: keyed_of(broker.cluster, f"good.{TOPIC}", 0) == numbered(110),
                COPIED_WITHIN_S,
                mirror.log_text,
            )
            assert not holds_a_secret(mirror.log_text())
            mirror.stop()
            for command in ("plan", "status"):
                told = output_of(command, mirror.file)
                for alias, row in found.items():
                    lines = [line for line in told.splitlines() if row.said in line]
                    assert lines, f"{command} says nothing of {alias}:\n{told}"
                assert not holds_a_secret(told)


def output_of(command: str, file: Path) -> str:
    """Return output with one line each, as in a pipe."""
    ran = subprocess.run(
        [COMMAND, command, str(file)], capture_output=True, text=True, timeout=ENDS_WITHIN_S, check=False
    )
    return ran.stdout + ran.stderr


def time_of(line: str) -> float:
    return dt.datetime.strptime(f"{line[:23]}+0000", "%Y-%m-%d %H:%M:%S.%f%z").timestamp()


def holds_a_secret(text: str) -> bool:
    return any(secret in text for secret in (PASSWORD, LOGIN_PASSWORD, "wrong word"))
