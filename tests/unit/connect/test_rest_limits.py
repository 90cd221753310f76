"""A config from the REST API names only modules and files that the worker's file allows."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from sparkmirror.config.client_layers import source_admin
from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.connector_options import CONNECTORS
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import user_names
from sparkmirror.config.worker_settings import worker_settings
from sparkmirror.connect.connector_factory import ConnectorFactory
from sparkmirror.connect.connector_parser import ConnectorParser, require_allowed
from sparkmirror.connect.validation import plugin_config_keys, validate
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.errors import AuthenticationError, ConfigError
from sparkmirror.security.assertions import assertion_of
from sparkmirror.security.tls_context import client_context
from sparkmirror.settings.configured import configured_source
from tests.support.certificates import authority
from tests.unit.connect.test_herder import WORKER

CONFIG = {
    "name": "a",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}
KEYS = (
    "replication.policy.class",
    "topic.filter.class",
    "group.filter.class",
    "config.property.filter.class",
    "forwarding.admin.class",
)


def factory(worker: Properties, environment: Mapping[str, str] = MappingProxyType({})) -> ConnectorFactory:
    parser = ConnectorParser(worker, worker_settings(worker), environment)
    return ConnectorFactory(parser, NotImplemented, NotImplemented)


@pytest.mark.parametrize("key", KEYS)
def test_an_unlisted_module_is_not_imported(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted_module.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = {**CONFIG, key: "planted_module:Any"}
    if key == "group.filter.class":
        config["connector.class"] = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
    worker = Properties(WORKER)
    assert "plugin.modules" in str(validate(None, config, worker))
    for action in (factory(worker).prepared_again, factory(worker).plan):
        with pytest.raises(ConfigError, match=r"plugin\.modules"):
            action(config)
    assert not (tmp_path / "ran").exists()
    assert "planted_module" not in sys.modules


def test_files_lie_below_the_allowed_paths(tmp_path: Path) -> None:
    allowed, outside = tmp_path / "allowed", tmp_path / "allowed-not"
    allowed.mkdir()
    outside.write_text("bob=secret\n")
    (allowed / "users").write_text("bob=secret\n")
    (allowed / "link").symlink_to(outside)
    worker = Properties({"connector.allowed.paths": str(allowed)})
    inside = Properties({"sync.users": str(allowed / "users")})
    require_allowed(inside, worker)
    with pytest.raises(ConfigError, match=r"connector\.allowed\.paths"):
        require_allowed(inside, Properties())
    for path in (outside, allowed / "link", allowed / ".." / "allowed-not"):
        with pytest.raises(ConfigError, match=r"connector\.allowed\.paths"):
            require_allowed(Properties({"sync.users": str(path)}), worker)


@pytest.mark.parametrize(
    "key",
    [
        "source.cluster.ssl.truststore.location",
        "producer.override.ssl.keystore.location",
        "target.consumer.sasl.oauthbearer.assertion.file",
    ],
)
def test_stores_and_assertions_are_such_files(key: str, tmp_path: Path) -> None:
    connector = Properties({key: str(tmp_path / "file")})
    with pytest.raises(ConfigError, match=r"connector\.allowed\.paths"):
        require_allowed(connector, Properties())
    require_allowed(connector, Properties({"connector.allowed.paths": str(tmp_path)}))


CLUSTER = "source.cluster."
OAUTH = {
    f"{CLUSTER}security.protocol": "SASL_SSL",
    f"{CLUSTER}sasl.mechanism": "OAUTHBEARER",
    f"{CLUSTER}sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
}
JWT = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
BEARER = {
    f"{CLUSTER}sasl.jaas.config": "OAuthBearerLoginModule required;",
    f"{CLUSTER}sasl.oauthbearer.jwt.retriever.class": JWT,
}


def users_of(config: dict[str, str], worker: Properties) -> object:
    parser = ConnectorParser(worker, worker_settings(worker), {})
    source = configured_source(parser.resolved(config), worker, worker_settings(worker))
    assert source is not None
    assert source.settings.sync_users is not None
    return user_names(source.settings.sync_users)


def connection_of(config: dict[str, str], worker: Properties) -> ConnectionSettings:
    return source_admin(ConnectorParser(worker, worker_settings(worker), {}).resolved(config))


def context_of(config: dict[str, str], worker: Properties) -> object:
    tls = connection_of(config, worker).tls
    assert tls is not None
    return client_context(tls.current())


def assertion_by(config: dict[str, str], worker: Properties) -> object:
    sasl = connection_of(config, worker).sasl
    assert sasl is not None
    source = sasl.current().token
    assert source is not None
    assert source.assertion is not None
    return assertion_of(source.assertion, 0.0)


def context_of_endpoint(config: dict[str, str], worker: Properties) -> object:
    sasl = connection_of(config, worker).sasl
    assert sasl is not None
    source = sasl.current().token
    assert source is not None
    assert source.tls is not None
    return client_context(source.tls)


TLS = {f"{CLUSTER}security.protocol": "SSL", f"{CLUSTER}ssl.truststore.type": "PEM"}
ENDPOINT = 'clientId="c" clientSecret="s" ssl.truststore.type=PEM ssl.truststore.location="FILE"'


@pytest.mark.parametrize(
    ("config", "read"),
    [
        ({"sync.users": "FILE"}, users_of),
        ({**TLS, f"{CLUSTER}ssl.truststore.location": "FILE"}, context_of),
        ({**TLS, "admin.ssl.truststore.location": "FILE"}, context_of),
        ({**OAUTH, **BEARER, f"{CLUSTER}sasl.oauthbearer.assertion.file": "FILE"}, assertion_by),
        ({**OAUTH, f"{CLUSTER}sasl.jaas.config": f"a.Module required {ENDPOINT};"}, context_of_endpoint),
    ],
)
def test_a_file_that_became_a_link_after_the_check_is_not_read(
    config: dict[str, str],
    read: Callable[[dict[str, str], Properties], object],
    tmp_path: Path,
) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    allowed.mkdir()
    file = allowed / "file"
    authority_pem = authority("own").certificate_pem()
    for path in (file, secret):
        path.write_text(authority_pem)
    limits = {
        "connector.allowed.paths": str(allowed),
        "sasl.oauthbearer.allowed.urls": "https://idp.example/token",
    }
    written = {key: text.replace("FILE", str(file)) for key, text in config.items()}
    worker = Properties(WORKER | limits)
    factory(worker).prepared_again({**CONFIG, **written})
    assert read({**CONFIG, **written}, worker)
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises((ConfigError, AuthenticationError), match="not below a folder that is allowed"):
        read({**CONFIG, **written}, worker)


def test_stores_of_a_token_endpoint_are_such_files(tmp_path: Path) -> None:
    options = f'ssl.truststore.location="{tmp_path / "file"}"'
    jaas = {"source.cluster.sasl.jaas.config": f"OAuthBearerLoginModule required {options};"}
    with pytest.raises(ConfigError, match=r"connector\.allowed\.paths") as error:
        require_allowed(Properties(jaas), Properties())
    assert "file" not in str(error.value)
    require_allowed(Properties(jaas), Properties({"connector.allowed.paths": str(tmp_path)}))


@pytest.mark.parametrize("url", ["http://169.254.169.254/token", "file:///etc/passwd"])
def test_urls_are_those_of_the_worker(url: str) -> None:
    connector = Properties({"source.cluster.sasl.oauthbearer.token.endpoint.url": url})
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.allowed\.urls"):
        require_allowed(connector, Properties({"sasl.oauthbearer.allowed.urls": "http://issuer/token"}))
    require_allowed(connector, Properties({"sasl.oauthbearer.allowed.urls": url}))


def options_of(connector: str) -> list[str]:
    """Return the options of the connector itself, and of its clients on both sides."""
    own = [info["name"] for info in plugin_config_keys(connector)]
    clients = [f"{prefix}.{name}" for prefix in ("source.cluster", "target.cluster") for name in SHARED_NAMES]
    return [*own, *clients, "producer.override.linger.ms", "admin.bootstrap.servers"]


def logged_in(mechanism: str) -> dict[str, str]:
    """Settings with which every `ssl.*` and `sasl.*` counts, on both sides."""
    options = 'username="u" password="p" clientId="c" clientSecret="s"'
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"a.Module required {options};",
        "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
    }
    return {
        f"{side}.cluster.{key}": value for side in ("source", "target") for key, value in settings.items()
    }


@pytest.mark.parametrize("connector", sorted(CONNECTORS))
@pytest.mark.parametrize("text", ["geheim:99999,geheim[", "geheim[=5"], ids=["servers", "name"])
@pytest.mark.parametrize(
    ("written", "mechanism"),
    [
        pytest.param("${env:PLANTED}", "PLAIN", id="alone"),
        pytest.param("a${env:PLANTED}(", "OAUTHBEARER", id="within"),
    ],
)
def test_no_error_holds_what_a_placeholder_stands_for(
    connector: str, text: str, written: str, mechanism: str
) -> None:
    provider = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    limits = {"sasl.oauthbearer.allowed.urls": "https://idp.example/token", "connector.allowed.paths": "/"}
    worker = Properties(WORKER | provider | limits)
    environment = {"PLANTED": text}
    makes = factory(worker, environment)
    refused, shown = set(), []
    for key in options_of(connector):
        config = {**CONFIG, **logged_in(mechanism), "connector.class": connector, key: written}
        texts = []
        try:
            texts.append(str(validate(None, config, worker, environment)))
            makes.prepared_again(config)
        except (ConfigError, ConnectError) as error:
            refused.add(key)
            texts.append(str(error))
        if text in "".join(texts).replace(connector, ""):
            shown.append(key)
    assert refused
    assert shown == []


def test_files_of_a_validated_config_lie_below_the_allowed_paths_too(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text(f"path={tmp_path / 'users'}\n")
    provider = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    worker = Properties({**WORKER, **provider, "connector.allowed.paths": str(tmp_path)})
    makes = factory(worker)
    given = makes.given({**CONFIG, "sync.users": f"${{file:{tmp_path / 'folder'}:path}}"})
    makes.prepared(given.properties)
    assert given.properties["sync.users"] == str(tmp_path / "users")
    assert given.properties.roots("sync.users") == (str(tmp_path),)
    outside = makes.given({**CONFIG, "sync.users": "/etc/passwd"})
    with pytest.raises(ConfigError, match=r"connector\.allowed\.paths"):
        makes.prepared(outside.properties)
