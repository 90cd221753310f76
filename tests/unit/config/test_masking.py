"""A viewer of the REST API sees a config without its secrets."""

import time

import pytest

from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER
from sparkmirror.config.connector_options import CONNECTORS
from sparkmirror.config.definitions import Type
from sparkmirror.config.masking import masked
from sparkmirror.config.worker_options import MIRROR_MAKER, WORKER

SECRET = "s3cret"


def test_values_of_secret_settings_are_hidden_and_placeholders_are_not() -> None:
    config = {
        "source.cluster.sasl.jaas.config": SECRET,
        "ssl.keystore.password": "${file:/a:b}",
        "ssl.key.password": "",
        "basic.auth.user.info": f"${{env:A}}{SECRET}",
        "topics": "orders",
    }
    assert masked(config) == {
        "source.cluster.sasl.jaas.config": "[hidden]",
        "ssl.keystore.password": "${file:/a:b}",
        "ssl.key.password": "",
        "basic.auth.user.info": "[hidden]",
        "topics": "orders",
    }


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [
        ("transforms.x.auth.token", True),
        ("producer.override.apiToken", True),
        ("transforms.x.token.field", False),
        ("transforms.x.passphrase", True),
        ("transforms.x.clientSecret", True),
        ("value.converter.credentials", True),
        ("transforms.x.access-key", True),
        ("transforms.x.accesskey.id", True),
        ("source.cluster.ssl.keystore.key", True),
        ("source.cluster.ssl.keystore.certificate.chain", True),
        ("source.cluster.ssl.truststore.certificates", True),
        ("source.cluster.ssl.keystore.location", False),
    ],
)
def test_a_setting_is_secret_by_its_name(key: str, is_secret: bool) -> None:
    assert masked({key: SECRET}) == {key: "[hidden]" if is_secret else SECRET}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (f"https://user:{SECRET}@registry.example/a?b@c", "https://[hidden]@registry.example/a?b@c"),
        ("https://registry.example/user@mail", "https://registry.example/user@mail"),
        (f'PlainLoginModule required username="u" password="{SECRET}";', None),
        (f"password='{SECRET} and more'", None),
        (f'{{"clientSecret": "{SECRET}"}}', None),
        (f"truststore.password={SECRET}, next=x", None),
        (f"auth.token={SECRET}, next=x", None),
        ("A password is needed", "A password is needed"),
    ],
)
def test_secrets_within_other_values_are_hidden(value: str, shown: str | None) -> None:
    (found,) = masked({"transforms.x.y": value}).values()
    assert SECRET not in found
    if shown is not None:
        assert found == shown


def test_every_password_option_is_hidden_below_any_prefix() -> None:
    tables = (ADMIN, CONSUMER, PRODUCER, WORKER, MIRROR_MAKER, *CONNECTORS.values())
    names = {option.name for table in tables for option in table if option.type is Type.PASSWORD}
    assert len(names) > 8
    prefixes = ("", "source.cluster.", "target.admin.", "producer.override.")
    config = {f"{prefix}{name}": SECRET for prefix in prefixes for name in names}
    assert set(masked(config).values()) == {"[hidden]"}


@pytest.mark.parametrize("text", ["a", " ", "://", "password", 'password="', "://@", "secret ="])
def test_no_value_takes_long(text: str) -> None:
    began = time.process_time()
    masked({"a": text * (1 << 18)})
    assert time.process_time() - began < 2
