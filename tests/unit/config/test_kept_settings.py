"""Logins whose secrets are kept elsewhere: read each time, and never brought along."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror.config import client_layers
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.sasl import SaslSettings

CLASSES = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "file, env",
    "config.providers.file.class": f"{CLASSES}FileConfigProvider",
    "config.providers.env.class": f"{CLASSES}EnvVarConfigProvider",
}


def client(jaas: str, more: Mapping[str, str] | None = None, **environment: str) -> ConnectionSettings:
    written = {
        "bootstrap.servers": "h:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas,
        **(more or {}),
    }
    connector = Properties({f"source.cluster.{key}": value for key, value in written.items()})
    providers = configured_providers(Properties(PROVIDERS), environment)
    return client_layers.source_admin(resolved(connector, providers))


def scram(password: str) -> str:
    return f'ScramLoginModule required username="u" password="{password}";'


def login(settings: ConnectionSettings) -> SaslSettings:
    assert settings.sasl is not None
    return settings.sasl


def test_a_password_in_a_file_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("password = first\n")
    settings = login(client(scram(f"${{file:{file}:password}}")))
    assert (settings.current().username, settings.current().password) == ("u", "first")
    file.write_text("password = second\n")
    assert settings.current().password == "second"
    file.unlink()
    with pytest.raises(ConfigError, match="provider 'file'"):
        settings.current()


def test_a_job_brings_along_where_a_secret_is_and_not_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secrets"
    file.write_text("password = hushed-in-a-file\n")
    for jaas in (scram(f"${{file:{file}:password}}"), scram("${env:HUSHED}")):
        settings = client(jaas, HUSHED="hushed-in-driver", OTHER="hushed too")
        assert not settings.holds_secrets
        sent = pickle.dumps(settings)
        assert b"hushed" not in sent
        monkeypatch.setenv("HUSHED", "hushed-in-executor")
        arrived = login(pickle.loads(sent))
        assert arrived.current().password in ("hushed-in-a-file", "hushed-in-executor")


def test_a_whole_config_may_be_kept_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text(f"jaas = {scram('hush')}\n")
    settings = client(f"${{file:{file}:jaas}}")
    assert not settings.holds_secrets
    assert login(settings).current().password == "hush"


def test_a_secret_beside_a_placeholder_is_one(tmp_path: Path) -> None:
    file = tmp_path / "names"
    file.write_text("user = u\n")
    settings = client(f'ScramLoginModule required username="${{file:{file}:user}}" password="hush";')
    assert settings.holds_secrets


@pytest.mark.parametrize(
    "jaas",
    [
        'ScramLoginModule required username=${env:HUSHED} password="hush";',
        'Module required username="${env:HUSHED}" password="${env:HUSHED}" other_password="hush";',
    ],
)
def test_a_secret_is_one_whatever_the_placeholders_stand_for(jaas: str) -> None:
    """The whole may be no login until their values are known."""
    assert client(jaas, HUSHED="hushed").holds_secrets


def test_a_secret_is_one_whatever_the_mechanism_makes_of_it() -> None:
    """It is brought along with the others."""
    url = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "${env:HUSHED}"}
    written = 'OAuthBearerLoginModule required clientId="mirror" clientSecret="hush";'
    assert client(written, url, HUSHED="https://idp/token").holds_secrets
    other = {"sasl.oauthbearer.client.credentials.client.secret": "hush"}
    assert client(scram("${env:HUSHED}"), other, HUSHED="hushed").holds_secrets
    named = {"sasl.oauthbearer.client.credentials.client.id": "mirror"}
    assert not client(scram("${env:HUSHED}"), named, HUSHED="hushed").holds_secrets


def test_without_placeholders_nothing_is_read_again() -> None:
    settings = client(scram("hush"))
    assert settings.holds_secrets
    assert login(settings).current() is settings.sasl


def test_a_store_s_password_is_read_again_each_time_and_not_brought_along(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("jaas = " + scram("other") + "\npassword = hushed-first\n")
    store = {
        "ssl.keystore.location": "/etc/k.p12",
        "ssl.keystore.password": f"${{file:{file}:password}}",
        "ssl.keystore.type": "PKCS12",
    }
    settings = client(f"${{file:{file}:jaas}}", store)
    assert not settings.holds_secrets
    sent = pickle.dumps(settings)
    assert b"hushed" not in sent
    file.write_text("password = hushed-second\n")
    tls = pickle.loads(sent).tls
    assert tls.current().key_store.password == "hushed-second"
    assert client(scram(f"${{file:{file}:password}}"), store | {"ssl.key.password": "hush"}).holds_secrets
