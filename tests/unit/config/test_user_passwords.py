from pathlib import Path

import pytest

from sparkmirror.config.user_passwords import user_names, user_passwords
from sparkmirror.domain.errors import ConfigError

PROVIDED = """
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users.properties"


def test_lines_name_users_and_passwords(file: Path) -> None:
    file.write_text("alice = wonder=land\nCN\\=b\\:ob = größe\n", encoding="utf-8")
    assert user_names(str(file)) == {"alice", "CN=b:ob"}
    assert user_passwords(str(file), {}) == {"alice": "wonder=land", "CN=b:ob": "größe"}


def test_passwords_may_come_from_providers(file: Path) -> None:
    file.write_text(PROVIDED + "alice = ${env:ALICE}\n")
    assert user_names(str(file)) == {"alice"}
    assert user_passwords(str(file), {"ALICE": "hush"}) == {"alice": "hush"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PROVIDED + "alice = hush-${env:NOBODY}\n", r"alice: provider 'env' has no value for 'NOBODY'"),
        ("alice =\n", r"users.properties: alice: the password is empty"),
        ("alice = \\uhush\n", r"Malformed \\uxxxx"),
    ],
)
def test_what_is_wrong_is_said_without_a_password(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=why) as error:
        user_passwords(str(file), {})
    assert "hush" not in str(error.value)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"users\.properties: No such file"):
        user_names(str(file))
