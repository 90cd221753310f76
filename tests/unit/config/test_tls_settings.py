"""Some `ssl.*` keys of clients are refused before any file is opened."""

import pytest

from sparkmirror.config import client_layers
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ("keystore", "with PEM format, only key password may be specified"),
        ("truststore", "for PEM format"),
    ],
)
@pytest.mark.parametrize("location", ["ssl.{}.location", None])
def test_a_password_of_a_pem_store_is_refused_as_in_java(
    store: str, reason: str, location: str | None
) -> None:
    written = {
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:9093",
        "source.cluster.security.protocol": "SSL",
        f"source.cluster.ssl.{store}.type": "PEM",
        f"source.cluster.ssl.{store}.password": "hush",
    }
    if location is not None:
        written[f"source.cluster.{location.format(store)}"] = "/etc/mirror/store.pem"
    elif store == "keystore":
        written |= {
            "source.cluster.ssl.keystore.key": "k",
            "source.cluster.ssl.keystore.certificate.chain": "c",
        }
    else:
        written["source.cluster.ssl.truststore.certificates"] = "c"
    with pytest.raises(ConfigError) as error:
        client_layers.source_admin(Properties(written))
    assert error.value.key == f"source.cluster.ssl.{store}.password"
    assert reason in error.value.reason
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_password_without_a_store_is_refused_as_in_java(store: str) -> None:
    """Otherwise the system's authorities would be trusted where the user thinks of a store."""
    written = {
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:9093",
        "source.cluster.security.protocol": "SSL",
        f"source.cluster.ssl.{store}.password": "hush",
    }
    with pytest.raises(ConfigError, match=rf"is given without ssl\.{store}\.location") as error:
        client_layers.source_admin(Properties(written))
    assert error.value.key == f"source.cluster.ssl.{store}.password"
    assert "hush" not in str(error.value)
