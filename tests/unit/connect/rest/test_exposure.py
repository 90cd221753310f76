"""The warning about a REST API that is more open than the Kafka behind it."""

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.connect.rest.rest_settings import exposure, rest_settings

SECURED = {"security.protocol": "sasl_ssl"}
CERTIFICATES = {"ssl.client.auth": "required"}
TOKENS = {
    "rest.oauthbearer.jwks.endpoint.url": "file:/keys",
    "rest.oauthbearer.expected.issuer": "i",
    "rest.oauthbearer.expected.audience": "a",
}


def warning(**more: str) -> str | None:
    worker = Properties({key.replace("_", "."): value for key, value in more.items()})
    return exposure(worker, rest_settings(worker))


@pytest.mark.parametrize(
    ("settings", "listeners"),
    [
        ({}, "http://:8083"),
        (
            {"listeners": "http://0.0.0.0:1,http://127.0.0.1:2,https://[::]:3"},
            "http://0.0.0.0:1, https://[::]:3",
        ),
        ({"listeners": "http://localhost:1", "admin.listeners": "http://a.example:2"}, "http://a.example:2"),
        ({"listeners": "http://10.0.0.1:1,https://10.0.0.1:2", **CERTIFICATES}, "http://10.0.0.1:1"),
        ({"listeners": "https://10.0.0.1:2", "ssl.client.auth": "requested"}, "https://10.0.0.1:2"),
    ],
)
def test_open_listeners_before_a_secured_kafka_are_named(settings: dict[str, str], listeners: str) -> None:
    said = warning(**SECURED, **settings) or ""
    assert f"Kafka asks for SASL_SSL, but the REST API at {listeners} is open" in said
    for key in ("rest.extension.classes=", "rest.oauthbearer.jwks.endpoint.url", "ssl.client.auth=required"):
        assert key in said


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"security.protocol": "PLAINTEXT"},
        {**SECURED, "listeners": "http://127.0.0.1:1,http://localhost:2,http://[::1]:3"},
        {**SECURED, "listeners": "https://:1", **CERTIFICATES},
        {**SECURED, **TOKENS},
    ],
)
def test_an_api_that_is_no_more_open_than_kafka_is_not_warned_of(settings: dict[str, str]) -> None:
    assert warning(**settings) is None
