"""Basic authentication answers as BasicAuthSecurityRestExtension of a real Java Connect worker does.

Not part of `make test`, since it fetches the extension once and starts a worker for it:
`python -m pytest tests/system/check_basic_auth_against_java.py`.
"""

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.java.find_java import find_java
from sparkmirror.java.ivy import Ivy, Module
from sparkmirror.java.jars import KAFKA_VERSION
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_requests import Request, ask
from tests.support.rest_serving import serving, settings
from tests.support.waiting import await_value
from tests.system.java_mm2 import JavaProcess, java_command

STARTS_WITHIN_S: Final = 240.0
NAME: Final = "connect-basic-auth-extension"
PACKAGE: Final = "org.apache.kafka.connect.rest.basic.auth.extension"
CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


def basic(text: bytes) -> str:
    return f"Basic {base64.b64encode(text).decode()}"


RIGHT: Final = basic(b"ops:right")
LOGINS: Final = {
    "none": None,
    "right": RIGHT,
    "small letters": RIGHT.replace("Basic", "basic"),
    "other user": basic("mia:süß".encode()),
    "wrong password": basic(b"ops:wrong"),
    "no password": basic(b"ops:"),
    "no colon": basic(b"ops"),
    "colon in the password": basic(b"eva:a:b"),
    "unknown user": basic(b"nobody:right"),
    "another scheme": "Bearer abc",
}
REQUESTS: Final = (
    ("GET", "/"),
    ("GET", "/connectors"),
    ("GET", "/connectors/none"),
    ("POST", "/connectors/none/restart"),
    ("PUT", "/connectors/none/pause"),
)


def extension(folder: Path) -> Path:
    """The jar with the extension, which a Connect distribution has beside the others."""
    module = Module("org.apache.kafka", NAME, KAFKA_VERSION)
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDONLY)
    try:
        jars = Ivy.of_pyspark(find_java()).retrieve((module,), folder, keep_open=lock, on_line=lambda _: None)
    finally:
        os.close(lock)
    return jars / f"{NAME}-{KAFKA_VERSION}.jar"


@contextmanager
def java_worker(folder: Path, properties: Mapping[str, str], jaas: Path) -> Iterator[str]:
    """The URL of a Connect worker with the extension."""
    port = ReservedPort()
    url = f"http://{HOST}:{port.number}"
    file = folder / "connect.properties"
    written = {**properties, "listeners": url, "plugin.discovery": "service_load"}
    file.write_text(javaproperties.dumps(written), encoding="ascii")
    command = java_command("org.apache.kafka.connect.cli.ConnectDistributed", str(file))
    command[command.index("-cp") + 1] += f":{extension(folder)}"
    command.insert(1, f"-Djava.security.auth.login.config={jaas}")
    worker = JavaProcess(command, folder / "connect.log")

    def is_up() -> bool:
        assert worker.is_alive(), worker.log_text()
        try:
            return ask(url, Request("GET", "/health", headers={"Authorization": RIGHT})).status == 200
        except OSError:
            return False

    try:
        await_value(is_up, STARTS_WITHIN_S, worker.log_text)
        yield url
    finally:
        worker.kill()
        port.release()


@pytest.fixture(scope="module")
def jaas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("users")
    (folder / "users").write_text("ops=right\nmia=s\\u00fc\\u00df\neva=a:b\n")
    file = folder / "jaas.conf"
    file.write_text(f'KafkaConnect {{ {PACKAGE}.PropertyFileLoginModule required file="{folder}/users"; }};')
    return file


@pytest.fixture(scope="module")
def java_url(
    target_cluster: LocalCluster, jaas: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    stores = {
        f"{store}.storage.{key}": value
        for store in ("config", "offset", "status")
        for key, value in (("topic", f"basic-auth-{store}"), ("replication.factor", "1"))
    }
    properties = {
        **stores,
        "bootstrap.servers": target_cluster.bootstrap_servers,
        "group.id": "basic-auth",
        "key.converter": CONVERTER,
        "value.converter": CONVERTER,
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "rest.extension.classes": f"{PACKAGE}.BasicAuthSecurityRestExtension",
    }
    with java_worker(tmp_path_factory.mktemp("java"), properties, jaas) as url:
        yield url


@pytest.fixture(scope="module")
def our_url(jaas: Path) -> Iterator[str]:
    rest = settings(
        rest_extension_classes=f"{PACKAGE}.BasicAuthSecurityRestExtension",
        java_security_auth_login_config=str(jaas),
    )
    with serving(MemoryHerder(), rest) as url:
        yield url


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize(("verb", "path"), REQUESTS)
def test_users_that_java_refuses_are_refused_with_its_words(
    java_url: str, our_url: str, login: str, verb: str, path: str
) -> None:
    """Answers are JSON here, and the challenge is added, without which browsers don't ask for a password."""
    header = LOGINS[login]
    request = Request(verb, path, headers={} if header is None else {"Authorization": header})
    java, ours = ask(java_url, request), ask(our_url, request)
    assert ours.status == java.status
    if ours.status == 401:
        assert ours.message() == java.body.decode()
        assert "Basic realm=" in str(ours.headers)
