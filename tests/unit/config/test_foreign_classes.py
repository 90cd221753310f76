"""Classes that only Java has are refused by name, wherever a client's `ssl.*` and `sasl.*` keys name them."""

import pytest

from sparkmirror.config import client_layers
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError

LOGIN = {
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'PlainLoginModule required username="token" password="hush";',
}


def settings(**more: str) -> object:
    client = {"security.protocol": "SASL_SSL", **LOGIN, **more}
    written = {f"source.cluster.{key}": text for key, text in client.items()}
    clusters = {"source.cluster.alias": "A", "source.cluster.bootstrap.servers": "a:9093"}
    return client_layers.source_admin(Properties(clusters | written))


@pytest.mark.parametrize(
    "key",
    [
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.jwt.validator.class",
    ],
)
def test_it_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match="has no counterpart") as error:
        settings(**{key: "com.example.Own"})
    assert error.value.key == f"source.cluster.{key}"


def test_providers_are_refused_where_java_takes_them() -> None:
    """The providers are one client's: Java's mirror hands a cluster's `security.providers` to none."""
    key = "source.admin.security.providers"
    own = Properties({"source.cluster.bootstrap.servers": "a:9093", key: "com.example.Own"})
    with pytest.raises(ConfigError, match="has no counterpart") as error:
        client_layers.source_admin(own)
    assert error.value.key == key


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("sasl.client.callback.handler.class", "software.amazon.msk.auth.iam.IAMClientCallbackHandler"),
        (
            "sasl.login.callback.handler.class",
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
        ),
        (
            "sasl.oauthbearer.jwt.validator.class",
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        ),
        ("ssl.keymanager.algorithm", "SunX509"),
        ("ssl.provider", ""),
        ("sasl.login.class", ""),
    ],
)
def test_what_is_done_here_anyway_is_taken(key: str, name: str) -> None:
    assert settings(**{key: name})
