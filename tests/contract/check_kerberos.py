"""Logs in by Kerberos: Debian's KDC, a broker with a key table, and a mirror's connections with theirs.

Not part of `make test`, since it needs a KDC and MIT's headers:
`apt-get install krb5-kdc krb5-admin-server libkrb5-dev gcc`, `.venv/bin/pip install '.[gssapi]'`,
`.venv/bin/python -m pytest tests/contract/check_kerberos.py`.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthenticationError, ConfigError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.cluster import read_metadata
from tests.contract.copying import Bench, connected, running
from tests.support.broker_data import append, numbered
from tests.support.secured_broker import SESSION_S, SecuredBroker, secured_broker

pytestmark = pytest.mark.skipif(
    find_spec("gssapi") is None or not Path("/usr/sbin/krb5kdc").exists(),
    reason="not run: needs a KDC and the extra gssapi",
)

REALM: Final = "EXAMPLE.TEST"
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule required"
TICKET_S: Final = 20.0
ENDS_WITHIN_S: Final = 60.0


@contextmanager
def kdc(folder: Path) -> Iterator[None]:
    """Serves REALM to this process and those that it starts; makes `broker.keytab` and `mirror.keytab`."""
    port = ReservedPort()
    number = port.number
    port.release()
    (folder / "krb5.conf").write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
        f" dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
        f" ticket_lifetime = {TICKET_S:.0f}s\n"
        f"[realms]\n {REALM} = {{\n  kdc = {HOST}:{number}\n }}\n"
        f"[domain_realm]\n {HOST} = {REALM}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_ports = {number}\n kdc_tcp_ports = {number}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
        f"  acl_file = {folder}/acl\n  max_life = 1h\n }}\n"
    )
    environment = {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={folder}/krb5.conf",
    }
    before = {key: os.environ.get(key) for key in environment}
    os.environ.update(environment)
    try:
        _ran("/usr/sbin/kdb5_util", "create", "-s", "-P", "master")
        for principal, table in ((f"kafka/{HOST}", "broker"), ("mirror", "mirror")):
            _ran("/usr/sbin/kadmin.local", "addprinc", "-randkey", principal)
            _ran("/usr/sbin/kadmin.local", "ktadd", "-k", str(folder / f"{table}.keytab"), principal)
        serving = subprocess.Popen(["/usr/sbin/krb5kdc", "-n"], stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            serving.terminate()
            serving.wait()
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _ran(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=ENDS_WITHIN_S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("kerberos")
    with kdc(made):
        yield made


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[SecuredBroker]:
    table = f'useKeyTab=true storeKey=true keyTab="{folder}/broker.keytab" principal="kafka/{HOST}@{REALM}"'
    more = {"sasl.enabled.mechanisms": "GSSAPI", "sasl.kerberos.service.name": "kafka"} | {
        f"listener.name.{name}.gssapi.sasl.jaas.config": f"{MODULE} {table};" for name in ("login", "short")
    }
    with secured_broker(folder / "home", more=more) as made:
        yield made


def by_table(folder: Path, principal: str = "mirror", table: str = "mirror.keytab") -> Mapping[str, str]:
    options = f'useKeyTab=true storeKey=true keyTab="{folder}/{table}" principal="{principal}@{REALM}"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"{MODULE} {options};",
    }


def test_a_key_table_is_a_login(broker: SecuredBroker, folder: Path) -> None:
    assert len(read_metadata(broker.settings("LOGIN", by_table(folder)), []).brokers) == 1


def test_a_ticket_cache_is_a_login(broker: SecuredBroker, folder: Path) -> None:
    cache = folder / "cache"
    _ran("/usr/bin/kinit", "-c", str(cache), "-k", "-t", str(folder / "mirror.keytab"), "mirror")
    options = f'useTicketCache=true ticketCache="{cache}"'
    properties = {**by_table(folder), "sasl.jaas.config": f"{MODULE} {options};"}
    assert len(read_metadata(broker.settings("LOGIN", properties), []).brokers) == 1


def confined(settings: ConnectionSettings, folder: Path) -> ConnectionSettings:
    """Settings as of a config of the REST API, whose files lie below the folder."""
    assert settings.sasl is not None
    assert settings.sasl.kerberos is not None
    kerberos = replace(settings.sasl.kerberos, roots=(str(folder),))
    return replace(settings, sasl=replace(settings.sasl, kerberos=kerberos))


def test_files_below_an_allowed_folder_are_a_login_until_they_become_links(
    broker: SecuredBroker, folder: Path, tmp_path: Path
) -> None:
    table, cache = tmp_path / "mirror.keytab", tmp_path / "cache"
    shutil.copy(folder / "mirror.keytab", table)
    _ran("/usr/bin/kinit", "-c", str(cache), "-k", "-t", str(table), "mirror")
    of_cache = {
        **by_table(folder),
        "sasl.jaas.config": f'{MODULE} useTicketCache=true ticketCache="{cache}";',
    }
    for file, properties in ((table, by_table(tmp_path)), (cache, of_cache)):
        settings = confined(broker.settings("LOGIN", properties), tmp_path)
        assert len(read_metadata(settings, []).brokers) == 1
        file.rename(folder / f"elsewhere-{file.name}")
        file.symlink_to(folder / f"elsewhere-{file.name}")
        with pytest.raises(AuthenticationError, match="is not below a folder that is allowed"):
            read_metadata(settings, [])


@pytest.mark.parametrize(
    ("principal", "table"),
    [("stranger", "mirror.keytab"), ("mirror", "no.keytab"), ("mirror", "broker.keytab")],
)
def test_what_gets_no_ticket_is_told(broker: SecuredBroker, folder: Path, principal: str, table: str) -> None:
    with pytest.raises(AuthenticationError) as error:
        read_metadata(broker.settings("LOGIN", by_table(folder, principal, table)), [])
    text = str(error.value)
    assert f"gets no Kerberos ticket for kafka@{HOST} by {folder}/{table} (try `kinit -k -t " in text
    assert text.startswith("near: ")
    assert "\n" not in text


def test_a_service_that_the_kdc_does_not_know_is_told(broker: SecuredBroker, folder: Path) -> None:
    properties = {**by_table(folder), "sasl.kerberos.service.name": "nobody"}
    with pytest.raises(AuthenticationError, match=f"gets no Kerberos ticket for nobody@{HOST}"):
        read_metadata(broker.settings("LOGIN", properties), [])


def test_the_service_s_name_is_needed(broker: SecuredBroker, folder: Path) -> None:
    properties = {key: value for key, value in by_table(folder).items() if "service" not in key}
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.service\.name"):
        broker.settings("LOGIN", properties)


def test_a_copy_continues_beyond_the_lives_of_sessions_and_tickets(
    broker: SecuredBroker, folder: Path
) -> None:
    """Tickets end after 20 s, sessions after 3 s."""
    bench, topic = Bench(broker.cluster, broker.cluster), "kerberos"
    bench.create_state_topics()
    bench.create(topic)
    plain = bench.plan(TopicPartition(topic, 0))
    secured = broker.settings("SHORT", by_table(folder))
    plan = connected(plain, secured, secured)
    written = 0
    with running(plan):
        until = time.monotonic() + TICKET_S + 2 * SESSION_S
        while time.monotonic() < until:
            append(broker.cluster, topic, numbered(10, written))
            written += 10
            bench.await_copied(topic, numbered(written))
