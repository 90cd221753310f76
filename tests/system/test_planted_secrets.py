"""Secrets planted wherever a worker takes them appear nowhere else, whatever it is asked.

One broker is both clusters: the worker logs in, the source wants a client certificate, the target a login.
"""

import base64
import itertools
import json
import secrets
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import confluent_kafka.admin as confluent
import psutil
import pytest
import urllib3

from sparkmirror.clusters.ports import HOST
from sparkmirror.config.worker_options import BASIC_AUTHENTICATION
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.app import Node, routes
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view import making
from tests.support import rest_serving
from tests.support.broker_data import append, create_topic, keyed_of, numbered
from tests.support.certificates import write
from tests.support.memory_herder import MemoryHerder
from tests.support.secured_broker import SecuredBroker, secured_broker
from tests.support.waiting import await_value
from tests.system.connect_node import SOURCE, ConnectNode, connector_config, group_properties, started

COPIED_WITHIN_S: Final = 180.0
STREAM_BYTES: Final = 500
"""Bytes read of a page that follows: it has no end."""
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
PROVIDER: Final = "org.apache.kafka.common.config.provider."
MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
TOPIC: Final = "planted.orders"

_OWN: Final = ("worker_login", "store", "env_login", "rest_admin", "rest_viewer", "spark", "opened")
"""Secrets in files, in the environment and behind placeholders: not even administrators may see them."""
_WRITTEN: Final = (
    *("literal_login", "literal_key", "literal_url", "wrong_login", "refused_url", "broken_body"),
    *("client_secret", "jaas_secret", "trust_password", "key_in_line", "token", "assertion", "kept_by_name"),
    *("wrong_password", "wrong_bearer", "in_query"),
)
"""Secrets in requests: users who may see configs as they are written see them there."""


class Planted(NamedTuple):
    own: dict[str, str]
    written: dict[str, str]

    @classmethod
    def new(cls) -> "Planted":
        own, written = (
            {name: f"planted-{name}-{secrets.token_hex(8)}" for name in n} for n in (_OWN, _WRITTEN)
        )
        return cls(own, written)

    def found_in(self, text: str, *, also_written: bool = True) -> list[str]:
        """The secrets that the text holds, each with what is around it."""
        looked_for = self.own | (self.written if also_written else {})
        places = ((name, text.find(secret)) for name, secret in looked_for.items())
        return [f"{name}: …{text[max(0, at - 150) : at + 50]}…" for name, at in places if at >= 0]


class Worker:
    """A node of a group of its own, and where its secrets are planted."""

    def __init__(self, node: ConnectNode, broker: SecuredBroker, planted: Planted, folder: Path) -> None:
        self.node = node
        self.broker = broker
        self.planted = planted
        self.folder = folder
        self._http = urllib3.PoolManager(timeout=60.0, retries=False)

    def ask(self, user: str, method: str, path: str, body: object = None) -> str:
        """The answer's status, headers and body. A body that is a text is sent as it is."""
        password = self.planted.own.get(f"rest_{user}", "wrong")
        headers = {"Authorization": f"Basic {encoded(user, password)}"}
        return self.sent(method, path, headers, body)

    def sent(self, method: str, path: str, headers: dict[str, str], body: object = None) -> str:
        sent = body if body is None or isinstance(body, str) else json.dumps(body)
        kind = {"Content-Type": "application/json"}
        with closing(
            self._http.request(
                method, f"{self.node.url}{path}", body=sent, headers=headers | kind, preload_content=False
            )
        ) as answer:
            is_stream = answer.headers.get("Content-Type", "").startswith("text/event-stream")
            content = answer.read(STREAM_BYTES) if is_stream else answer.data
        return f"{answer.status} {dict(answer.headers)} {content.decode('utf-8', 'replace')}"

    def config(self, **more: str) -> dict[str, str]:
        """A source connector's; `more` has underscores for dots."""
        store = {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.folder / "store.p12"),
            "ssl.keystore.password": f"${{directory:{self.folder}/secrets:store}}",
        }
        made = connector_config(
            SOURCE, ("near", self.broker.cluster), ("far", self.broker.cluster), topics=TOPIC
        )
        made["source.cluster.bootstrap.servers"] = f"{HOST}:{self.broker.ports['MUTUAL']}"
        made["target.cluster.bootstrap.servers"] = f"{HOST}:{self.broker.ports['SAFE']}"
        for key, value in (dict(self.broker.trusting) | store).items():
            made[f"source.cluster.{key}"] = value
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
        for key, value in (dict(self.broker.trusting) | login).items():
            made[f"target.cluster.{key}"] = value
        made["target.cluster.sasl.jaas.config"] = jaas("copier", "${env:PLANTED}")
        made["target.producer.sasl.jaas.config"] = jaas("writer", self.planted.written["literal_login"])
        made["source.consumer.ssl.key.password"] = self.planted.written["literal_key"]
        made["metrics.registry"] = f"https://user:{self.planted.written['literal_url']}@registry.example/"
        return made | {key.replace("_", "."): value for key, value in more.items()}


def encoded(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def jaas(user: str, password: str) -> str:
    return f'{SCRAM} required username="{user}" password="{password}";'


def add_users(broker: SecuredBroker, **passwords: str) -> None:
    admin = confluent.AdminClient({"bootstrap.servers": broker.cluster.bootstrap_servers})
    for user, password in passwords.items():
        info = confluent.ScramCredentialInfo(confluent.ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = confluent.UserScramCredentialUpsertion(user, info, password.encode())
        for done in admin.alter_user_scram_credentials([wanted]).values():
            done.result()


def worker_properties(broker: SecuredBroker, planted: Planted, folder: Path) -> dict[str, str]:
    """With a secret in each of its places; the files that hold them are written."""
    held = folder / "secrets"
    held.mkdir()
    (held / "store").write_text(planted.own["store"])
    (held / "logins.properties").write_text(
        f"worker={planted.own['worker_login']}\nopened={planted.own['opened']}\n"
    )
    write(folder / "store.p12", broker.client.pkcs12(planted.own["store"], broker.authority))
    (held / "users").write_text(f"admin={planted.own['rest_admin']}\nviewer={planted.own['rest_viewer']}\n")
    (held / "jaas").write_text(f'KafkaConnect {{ {MODULE} required file="{held}/users"; }};')
    (folder / "events").mkdir()
    return {
        **group_properties(broker.cluster, "planted"),
        **broker.trusting,
        "bootstrap.servers": f"{HOST}:{broker.ports['SAFE']}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas("worker", f"${{file:{held}/logins.properties:worker}}"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "store.p12"),
        "ssl.keystore.password": f"${{directory:{held}:store}}",
        "config.providers": "file,directory,env",
        "config.providers.file.class": f"{PROVIDER}FileConfigProvider",
        "config.providers.directory.class": f"{PROVIDER}DirectoryConfigProvider",
        "config.providers.env.class": f"{PROVIDER}EnvVarConfigProvider",
        "connector.allowed.paths": str(folder),
        "rest.extension.classes": BASIC_AUTHENTICATION[0],
        "java.security.auth.login.config": str(held / "jaas"),
        "rest.admin.users": "admin",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.hadoop.fs.s3a.secret.key": planted.own["spark"],
        "spark.example.sasl.jaas.config": jaas("x", planted.own["spark"]),
    }


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("planted")
    planted = Planted.new()
    with secured_broker(folder / "broker") as broker:
        add_users(
            broker,
            worker=planted.own["worker_login"],
            copier=planted.own["env_login"],
            writer=planted.written["literal_login"],
        )
        create_topic(broker.cluster.bootstrap_servers, TOPIC, partitions=1)
        append(broker.cluster, TOPIC, numbered(50))
        node = ConnectNode(folder / "node", worker_properties(broker, planted, folder))
        (folder / "temporary").mkdir()
        node.environment = {"PLANTED": planted.own["env_login"], "TMPDIR": str(folder / "temporary")}
        with started([node]):
            node.await_log("the leader|leads|started in")
            yield Worker(node, broker, planted, folder)


def good_requests(worker: Worker) -> Iterator[str]:
    """Until records are copied."""
    yield worker.ask("admin", "PUT", "/admin/loggers/root", {"level": "DEBUG"})
    await_value(
        lambda: " 200 " in f" {worker.ask('admin', 'GET', '/health')}",
        COPIED_WITHIN_S,
        worker.node.log_text,
    )
    yield worker.ask("admin", "PUT", "/connectors/planted/config", worker.config())
    await_value(
        lambda: len(keyed_of(worker.broker.cluster, f"near.{TOPIC}", 0)) == 50,
        COPIED_WITHIN_S,
        worker.node.log_text,
    )


BAD: Final = (
    *("source.cluster.bootstrap.servers", "offset.lag.max", "topic.max.bytes.per.second", "header.converter"),
    *(
        "replication.factor",
        "topics",
        "replication.policy.class",
        "sync.users",
        "target.cluster.ssl.cipher.suites",
    ),
    *("source.cluster.ssl.keystore.location", "target.cluster.sasl.mechanism", "producer.override.acks"),
)
"""Options that a secret is no value of."""


def logins_by_token(worker: Worker) -> dict[str, str]:
    """Options of a connector that never runs, each with a secret in it."""
    written = worker.planted.written
    return {
        "name": "tokens",
        "connector.class": "MirrorHeartbeatConnector",
        "enabled": "false",
        "target.cluster.sasl.mechanism": "OAUTHBEARER",
        "target.cluster.sasl.oauthbearer.client.credentials.client.secret": written["client_secret"],
        "target.cluster.sasl.jaas.config": (
            f'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="x"'
            f' clientSecret="{written["jaas_secret"]}" ssl.truststore.password="{written["trust_password"]}";'
        ),
        "source.cluster.ssl.keystore.key": f"-----BEGIN PRIVATE KEY----- {written['key_in_line']}",
        "source.cluster.ssl.truststore.certificates": f"-----BEGIN X----- {written['key_in_line']}",
        "source.cluster.ssl.truststore.password": written["trust_password"],
        "admin.override.sasl.oauthbearer.assertion.private.key.passphrase": written["assertion"],
        "transforms.x.api.token": written["token"],
        "transforms.x.basic.auth.credentials": written["kept_by_name"],
    }


def bad_requests(worker: Worker) -> Iterator[tuple[str, str]]:
    """The path of each, and its answer."""
    secret = f"${{file:{worker.folder}/secrets/logins.properties:opened}}"
    written = worker.planted.written
    for key in BAD:
        config = {**worker.config(), key: f"{secret}("}
        validate = "/connector-plugins/MirrorSourceConnector/config/validate"
        for path in (validate, "/connectors/bad/config"):
            yield path, worker.ask("admin", "PUT", path, config)
    url = {"sasl.oauthbearer.token.endpoint.url": f"https://user:{written['refused_url']}@idp.example/token"}
    yield (
        "/connectors/bad/config",
        worker.ask("admin", "PUT", "/connectors/bad/config", worker.config() | url),
    )
    broken = f'{{"name": "x", "config": {{"ssl.key.password": "{written["broken_body"]}"}}, '
    yield "/connectors", worker.ask("admin", "POST", "/connectors", broken)
    yield (
        "/connectors",
        worker.ask("admin", "POST", "/connectors", f'{broken} "password": "{written["broken_body"]}"}}'),
    )
    yield "/", worker.ask("nobody", "GET", "/")
    for login in (
        f"Bearer {written['wrong_bearer']}",
        f"Basic {encoded('admin', written['wrong_password'])}",
    ):
        yield "/", worker.sent("GET", "/connectors", {"Authorization": login})
    asked_for = f"/connectors?expand={written['in_query']}&password={written['in_query']}"
    yield "/", worker.ask("viewer", "GET", asked_for)
    tokens = worker.config() | logins_by_token(worker)
    validate = "/connector-plugins/MirrorHeartbeatConnector/config/validate"
    yield "/connectors/tokens/config", worker.ask("admin", "PUT", "/connectors/tokens/config", tokens)
    yield "/connectors/tokens/config", worker.ask("viewer", "PUT", validate, tokens)
    wrong = jaas("copier", written["wrong_login"])
    wrong_login = worker.config() | {"target.cluster.sasl.jaas.config": wrong, "name": "refused"}
    yield "/connectors/refused/config", worker.ask("admin", "PUT", "/connectors/refused/config", wrong_login)


def paths() -> Iterator[str]:
    """Every path that the API serves for reading, for each connector."""
    node = Node(MemoryHerder(), LogLevels(), lambda: ("text/plain", b""), any_view())
    for route in itertools.chain(*routes(node, rest_serving.settings())):
        path = route.path.replace("{task}", "0").replace("{plugin}", "MirrorSourceConnector")
        path = path.replace("{logger}", "root").replace("{page}", "overview").replace("{file}", "style.css")
        names = ("planted", "refused", "tokens") if "{connector}" in path else ("",)
        yield from (path.replace("{connector}", name) for name in names)
    yield from ("/connectors?expand=info&expand=status", "/mirror?groups=true", "/nothing")
    yield from (f"/ui/{page}?flow=near->far&name={TOPIC}" for page in ("flow", "topic", "groups", "group"))


def any_view() -> CurrentView:
    return CurrentView(lambda: making.Node("leader", "1.0"), list)


def test_planted_secrets_are_found_nowhere(worker: Worker) -> None:
    planted, node = worker.planted, worker.node
    for answer in good_requests(worker):
        assert not planted.found_in(answer, also_written=False), answer
    for path, answer in bad_requests(worker):
        assert not planted.found_in(answer, also_written=not answer.startswith("2")), (path, answer)
        assert path.startswith(("/connectors/refused/", "/connectors/tokens/")) or not answer.startswith(
            "201"
        ), (path, answer)
    node.await_log("refused.*copier|copier.*refused")
    assert " 204 " in f" {worker.ask('admin', 'POST', '/connectors/planted/restart')}"

    for path in paths():
        seen = worker.ask("viewer", "GET", path)
        is_forbidden = path.endswith(("/ui/act", "/ui/verified", "/verify"))
        expected = {"403"} if is_forbidden else {"200", "307", "400", "404", "405", "500"}
        assert seen[:3] in expected, (path, seen)
        assert not planted.found_in(seen), (path, seen)
        seen = worker.ask("admin", "GET", path)
        shows_config = (
            path.endswith(("/planted", "/refused", "/tokens", "/config", "/tasks")) or "expand=info" in path
        )
        assert not planted.found_in(seen, also_written=not shows_config), (path, seen)

    processes = node.processes()
    assert len(processes) >= 3
    for process in processes:
        assert not planted.found_in(read_of(process, "cmdline")), process
        mode = Path(f"/proc/{process.pid}/environ").stat().st_mode
        assert not stat.S_IMODE(mode) & 0o077
        environment = read_of(process, "environ")
        others = environment.replace(f"PLANTED={planted.own['env_login']}", "")
        assert not planted.found_in(others), process

    node.stop()
    looked_at = []
    for file in files_left(worker.folder):
        looked_at.append(file.name)
        assert not planted.found_in(file.read_bytes().decode("latin-1")), file
    assert "mirror.log" in looked_at
    assert "spark.log" in looked_at
    assert any(file.stat().st_size > 10_000 for file in (worker.folder / "events").rglob("*"))


def read_of(process: psutil.Process, name: str) -> str:
    return Path(f"/proc/{process.pid}/{name}").read_bytes().decode("latin-1")


def files_left(folder: Path) -> Iterator[Path]:
    """All but those that the secrets were put into; the broker's own are those of the other side."""
    for file in folder.rglob("*"):
        is_planted = file.is_relative_to(folder / "secrets") or file.name == "mm2.properties"
        if file.is_file() and not is_planted and not file.is_relative_to(folder / "broker"):
            yield file
