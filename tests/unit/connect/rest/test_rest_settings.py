import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.connect.rest.rest_settings import Advertised, Listener, TopicTracking, rest_settings
from sparkmirror.domain.errors import ConfigError


def test_the_default_listener_is_port_8083() -> None:
    settings = rest_settings(Properties())
    assert settings.listeners == (Listener("http", "", 8083),)
    assert settings.admin_listeners is None
    assert settings.advertised == Advertised()
    assert settings.tls is None


def test_all_settings_are_parsed() -> None:
    settings = rest_settings(
        Properties(
            {
                "listeners": "HTTP://myhost:8083, http://[::1]:0",
                "admin.listeners": "",
                "rest.advertised.host.name": "outside",
                "rest.advertised.port": "80",
                "rest.advertised.listener": "HTTP",
                "access.control.allow.origin": r"https://a, https://.*\.b",
                "access.control.allow.methods": "GET,PUT",
                "topic.tracking.allow.reset": "false",
                "inter.worker.verification.algorithms": "HmacSHA256, HmacSHA512",
            }
        )
    )
    assert settings.listeners == (Listener("http", "myhost", 8083), Listener("http", "::1", 0))
    assert str(settings.listeners[1]) == "http://[::1]:0"
    assert settings.admin_listeners == ()
    assert settings.advertised == Advertised("http", "outside", 80)
    assert settings.allowed_origins is not None
    assert settings.allowed_origins.fullmatch("https://x.b")
    assert settings.allowed_methods == ("GET", "PUT")
    assert settings.topic_tracking == TopicTracking(enabled=True, reset_allowed=False)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("access.control.allow.origin", "*.b", "nothing to repeat"),
        ("listeners", "", "At least one URL"),
        ("listeners", "myhost:8083", "protocol://hostname:port"),
        ("listeners", "ftp://myhost:8083", '"http" or "https"'),
        ("listeners", "http://myhost:99999", "from 0 to 65535"),
        ("listeners", "http://a:1,,http://b:1", "must not be empty"),
        ("admin.listeners", "admin:1", "protocol://hostname:port"),
        ("rest.advertised.listener", "https", "no listener of this protocol"),
        ("rest.advertised.port", "x", "Not a number"),
        ("response.http.headers.config", "unset A:b", "Invalid header config action"),
    ],
)
def test_bad_values_are_errors_that_name_the_key(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=key) as raised:
        rest_settings(Properties({key: value}))
    assert reason in str(raised.value)
