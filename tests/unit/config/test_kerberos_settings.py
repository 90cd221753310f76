"""GSSAPI's settings: `sasl.kerberos.service.name` and the options of Java's Krb5LoginModule."""

import pytest

from sparkmirror.config.client_options import ADMIN
from sparkmirror.config.properties import Properties
from sparkmirror.config.sasl_settings import sasl_settings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.sasl import KerberosLogin, SaslSettings

KEYTAB = 'useKeyTab=true storeKey=true keyTab="/etc/mirror.keytab" principal="mirror@EXAMPLE.COM"'


def login(options: str, **more: str) -> SaslSettings:
    properties = Properties(
        {
            "bootstrap.servers": "h:9092",
            "sasl.mechanism": "GSSAPI",
            "sasl.jaas.config": f"com.sun.security.auth.module.Krb5LoginModule required {options};",
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    return sasl_settings(properties, ADMIN.parse(properties))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (KEYTAB, KerberosLogin("kafka", "mirror@EXAMPLE.COM", "/etc/mirror.keytab")),
        (
            KEYTAB.replace("/etc", "FILE:/etc"),
            KerberosLogin("kafka", "mirror@EXAMPLE.COM", "/etc/mirror.keytab"),
        ),
        ("useTicketCache=true", KerberosLogin("kafka")),
        ('useTicketCache=TRUE ticketCache="/tmp/cc"', KerberosLogin("kafka", ticket_cache="/tmp/cc")),
    ],
)
def test_a_login_is_by_a_key_table_or_a_ticket_cache(options: str, expected: KerberosLogin) -> None:
    settings = login(options, sasl_kerberos_service_name="kafka")
    assert settings.kerberos == expected
    assert not settings.holds_secrets


def test_the_service_may_be_among_the_module_s_options() -> None:
    assert login(f'{KEYTAB} serviceName="broker"').kerberos == KerberosLogin(
        "broker", "mirror@EXAMPLE.COM", "/etc/mirror.keytab"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (KEYTAB, "sasl.kerberos.service.name: is missing"),
        ('serviceName=kafka useKeyTab=true principal="m@R"', "lacks the option keyTab"),
        ('serviceName=kafka useKeyTab=true keyTab="/k"', "lacks the option principal"),
        ("serviceName=kafka", "lacks useKeyTab=true or useTicketCache=true"),
    ],
)
def test_what_is_missing_is_named(options: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        login(options)
