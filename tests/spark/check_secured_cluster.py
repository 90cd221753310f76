"""Checks a mirror on a Spark cluster between two Kafka clusters that want TLS, a login and a key store.

No part of `make test`: a Spark cluster for each case, one to five minutes together.
`python -m pytest tests/spark/check_secured_cluster.py`.
"""

import secrets
import subprocess
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties
import pytest
import urllib3

from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.spark.standalone import SparkCluster, standalone_cluster
from tests.support.broker_data import append, create_topic, keyed_of, numbered
from tests.support.certificates import write
from tests.support.command_lines import command_line
from tests.support.mirror import COMMAND, REPLICATION, Mirror, running_mirror
from tests.support.secured_broker import SecuredBroker, add_scram_users, login, secured_broker
from tests.support.waiting import await_value

TOPIC: Final = "orders"
PARTITIONS: Final = 4
RECORDS: Final = 200
USER: Final = "copier"
COPIED_WITHIN_S: Final = 120.0
ENDS_WITHIN_S: Final = 300.0
CAN_NOT_TELL: Final = 2
"""The exit code of `sparkmirror verify` where nothing was compared."""
PAGES: Final = ("/environment/", "/jobs/", "/stages/", "/executors/", "/SQL/")
PROVIDERS: Final = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@dataclass(frozen=True, slots=True)
class Sides:
    """Two secured brokers, the same users with the same secrets on both, and where these are kept."""

    near: SecuredBroker
    far: SecuredBroker
    folder: Path
    password: str
    store: str

    def properties(self, *, written: bool) -> dict[str, str]:
        """Properties of a mirror; the secrets are written in them, or placeholders."""
        made = {
            "clusters": "near, far",
            "near->far.enabled": "true",
            "near->far.topics": TOPIC,
            "far->near.emit.heartbeats.enabled": "false",
            "tasks.max": "2",
            **PROVIDERS,
        }
        for alias, broker in (("near", self.near), ("far", self.far)):
            for key, value in self._client(broker, written=written).items():
                made[f"{alias}.{key}"] = value
        return made

    def _client(self, broker: SecuredBroker, *, written: bool) -> dict[str, str]:
        file = self.folder / "secrets.properties"
        password, store = (
            (self.password, self.store)
            if written
            else (
                f"${{file:{file}:password}}",
                f"${{file:{file}:store}}",
            )
        )
        return {
            **login("SCRAM-SHA-512", USER, password),
            **broker.trusting,
            "bootstrap.servers": f"{HOST}:{broker.ports['SAFE']}",
            "security.protocol": "SASL_SSL",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(broker.folder / "client.p12"),
            "ssl.keystore.password": store,
        }

    def secrets_in(self, text: str) -> list[str]:
        return [secret for secret in (self.password, self.store) if secret in text]

    def have_equal_records(self) -> bool:
        return all(
            keyed_of(self.far.cluster, f"near.{TOPIC}", number) == keyed_of(self.near.cluster, TOPIC, number)
            for number in range(PARTITIONS)
        )


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("secured")
    password, store = (f"planted-{name}-{secrets.token_hex(8)}" for name in ("login", "store"))
    (folder / "secrets.properties").write_text(f"password={password}\nstore={store}\n")
    with secured_broker(folder / "near") as near, secured_broker(folder / "far") as far:
        for broker in (near, far):
            add_scram_users(broker.cluster.bootstrap_servers, USER, password=password)
            write(broker.folder / "client.p12", broker.client.pkcs12(store, broker.authority))
        create_topic(near.cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
        yield Sides(near, far, folder, password, store)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without any package, for executors."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def protected() -> dict[str, str]:
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(16),
        "spark.network.crypto.enabled": "true",
    }


def traced(folder: Path, python: Path, ui_port: int) -> dict[str, str]:
    """With all that shows to others what Spark knows."""
    (folder / "events").mkdir()
    return {
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.pyspark.python": str(python),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui_port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }


@contextmanager
def running(
    sides: Sides, folder: Path, python: Path, own: Mapping[str, str], *, written: bool, workers: int = 2
) -> Iterator[tuple[SparkCluster, Mirror, int]]:
    """A Spark cluster with these settings of its own, a mirror on it, and the port of Spark's pages."""
    port = ReservedPort()
    number = port.number
    port.release()
    config = sides.properties(written=written) | traced(folder, python, number) | dict(own)
    (folder / "cluster").mkdir()
    with (
        standalone_cluster(folder / "cluster", workers=workers, cores=1, settings=own) as spark,
        running_mirror(folder / "mirror", config, "--master", spark.url) as mirror,
    ):
        yield spark, mirror, number


@pytest.mark.parametrize("written", [False, True], ids=["placeholders", "written"])
def test_records_are_copied_and_secrets_are_shown_nowhere(
    sides: Sides, tmp_path: Path, python: Path, written: bool
) -> None:
    """Written passwords go to executors that Spark knows, encrypted; placeholders need neither."""
    own = protected() if written else {}
    with running(sides, tmp_path, python, own, written=written) as (spark, mirror, port):
        for number in range(PARTITIONS):
            append(sides.near.cluster, TOPIC, numbered(RECORDS), partition=number)
        await_value(sides.have_equal_records, COPIED_WITHIN_S, mirror.log_text)
        mirror.await_log(f"copies {PARTITIONS} partitions in 2 tasks")  # on a busy machine not at once
        processes = {*spark.processes(), *mirror.processes()}
        assert sum("CoarseGrainedExecutorBackend" in line for line in map(command_line, processes)) == 2
        for process in processes:
            assert not sides.secrets_in(command_line(process)), process
        shown = pages(port)
        assert len(shown) > len(PAGES)
        for page, text in shown.items():
            assert not sides.secrets_in(text), page
        assert "spark.eventLog.dir" in shown["/environment/"]
        mirror.stop()
        if not written:
            bare = sides.properties(written=True) | {"spark.driver.host": HOST}
            refused = verified(tmp_path / "refused.properties", bare, spark.url)
            assert refused.returncode == CAN_NOT_TELL
            assert "spark.authenticate: must be true, since tasks bring passwords" in refused.stderr
            assert not sides.secrets_in(refused.stdout + refused.stderr)
        config = sides.properties(written=written) | dict(own)
        config |= {"spark.driver.host": HOST, "spark.pyspark.python": str(python)}
        equal = verified(tmp_path / "equal.properties", config, spark.url)
        assert equal.returncode == 0, equal.stdout + equal.stderr
    events = [file for file in (tmp_path / "events").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in events) > 10_000
    for file in left_behind(tmp_path):
        assert not sides.secrets_in(file.read_bytes().decode("latin-1")), file


def test_an_executor_that_comes_while_the_first_job_starts_gets_a_task(
    sides: Sides, tmp_path: Path, python: Path
) -> None:
    """The first job is cancelled while its task still starts Python, which must not keep the slot."""
    with running(sides, tmp_path, python, {}, written=False, workers=1) as (spark, mirror, _):
        mirror.await_log(r"copy job \d+ copies 4 partitions in 1 task\b")
        spark.add_worker(1)
        mirror.await_log(r"copy job \d+ copies 4 partitions in 2 tasks")
        for number in range(PARTITIONS):
            append(sides.near.cluster, TOPIC, numbered(RECORDS), partition=number)
        await_value(sides.have_equal_records, COPIED_WITHIN_S, mirror.log_text)
        mirror.stop()


def test_written_passwords_are_refused_where_spark_does_not_protect_them(
    sides: Sides, tmp_path: Path, python: Path
) -> None:
    with running(sides, tmp_path, python, {}, written=True) as (_, mirror, _):
        said = mirror.await_log(r"spark\.authenticate.*must be true, since tasks bring passwords")
    assert not sides.secrets_in(said)


def verified(file: Path, properties: Mapping[str, str], master: str) -> subprocess.CompletedProcess[str]:
    """`sparkmirror verify` on this Spark cluster. The file may hold secrets, and goes."""
    file.write_text(javaproperties.dumps({**REPLICATION, **properties, "spark.master": master}))
    ran = subprocess.run(
        [COMMAND, "verify", str(file)],
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )
    file.unlink()
    return ran


def pages(port: int) -> dict[str, str]:
    """Return Spark's own pages and answers of its REST API, by path."""
    http = urllib3.PoolManager(retries=False, timeout=30.0)

    def read(path: str) -> str:
        answer = http.request("GET", f"http://{HOST}:{port}{path}")
        assert answer.status == 200, (path, answer.status)
        return answer.data.decode()

    applications = "/api/v1/applications"
    (application,) = http.request("GET", f"http://{HOST}:{port}{applications}").json()
    below = f"{applications}/{application['id']}"
    every = [*PAGES, *(f"{below}/{name}" for name in ("environment", "jobs", "stages", "executors"))]
    return {path: read(path) for path in every}


def left_behind(folder: Path) -> Iterator[Path]:
    """Logs, the event log, and what executors leave; not the mirror's own file, where they are written."""
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "mm2.properties":
            yield file
