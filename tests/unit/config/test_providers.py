import os
import time
from pathlib import Path

import pytest

from sparkmirror.config.properties import FILE_BYTES_MAX, Properties
from sparkmirror.config.providers import configured_providers, resolved, user_names, user_passwords
from sparkmirror.domain.errors import ConfigError
from sparkmirror.files import NamedFile

PACKAGE = "org.apache.kafka.common.config.provider."


def resolve(text: str, settings: dict[str, str], environment: dict[str, str] | None = None) -> str:
    properties = Properties(settings)
    return resolved(Properties({"k": text}), configured_providers(properties, environment or {}))["k"]


def providers(name: str, class_name: str, **parameters: str) -> dict[str, str]:
    named = {f"config.providers.{name}.param.{key}": value for key, value in parameters.items()}
    return {"config.providers": name, f"config.providers.{name}.class": class_name} | named


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    file = tmp_path / "secrets.properties"
    file.write_text("user = u\npassword = hush\\u0021\n")
    return file


def test_files(secrets: Path) -> None:
    settings = providers("file", PACKAGE + "FileConfigProvider")
    text = f"x ${{file:{secrets}:user}} y ${{file:{secrets}:password}}"
    assert resolve(text, settings) == "x u y hush!"


def test_directories(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    settings = providers("dir", PACKAGE + "DirectoryConfigProvider")
    assert resolve(f"${{dir:{tmp_path}:token}}", settings) == "abc\n"


@pytest.mark.parametrize("key", ["../token", "gone", "", "sub"])
def test_directories_give_only_their_own_files(tmp_path: Path, key: str) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "token").write_text("abc")
    with pytest.raises(ConfigError, match="has no value for"):
        resolve(f"${{dir:{tmp_path}/in:{key}}}", providers("dir", "DirectoryConfigProvider"))


@pytest.mark.parametrize("class_name", [PACKAGE + "EnvVarConfigProvider", "EnvVarConfigProvider", "EnvVar"])
@pytest.mark.parametrize("text", ["${env:HOST}", "${env::HOST}"])
def test_environment(class_name: str, text: str) -> None:
    assert resolve(text, providers("env", class_name), {"HOST": "h"}) == "h"


def test_environment_has_no_paths() -> None:
    with pytest.raises(ConfigError, match="have no path"):
        resolve("${env:x:HOST}", providers("env", "EnvVar"), {"HOST": "h"})


def test_allowed_variables() -> None:
    settings = providers("env", "EnvVar") | {"config.providers.env.param.allowlist.pattern": "MM2_.*"}
    assert resolve("${env:MM2_X}", settings, {"MM2_X": "1"}) == "1"
    with pytest.raises(ConfigError, match="has no value for 'HOME'"):
        resolve("${env:HOME}", settings, {"HOME": "/root"})


@pytest.mark.parametrize("text", ["${nocolon}", "$ {file:a:b}", "plain", "${}"])
def test_what_is_no_placeholder_is_kept(text: str) -> None:
    assert resolve(text, providers("file", "File")) == text


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("${other:a:b}", providers("file", "File")),
        ("before ${file:a:b} behind", {"config.providers": "file"}),
        ("${file:a:b}", {"config.providers.file.class": "FileConfigProvider"}),
        ("${file:a:b}", {}),
    ],
)
def test_a_placeholder_whose_provider_is_not_declared_is_refused(text: str, declared: dict[str, str]) -> None:
    with pytest.raises(
        ConfigError, match=r"provider '(other|file)' is not declared: config\.providers must list it"
    ):
        resolve(text, declared)


def test_nested_placeholders_are_refused() -> None:
    with pytest.raises(ConfigError, match="placeholders can't be nested"):
        resolve("${env:${env:HOST}}", providers("env", "EnvVar"), {"HOST": "h"})


def test_an_unsupported_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.providers\.v\.class: is not a supported config provider"):
        resolve("x", providers("v", "com.example.VaultConfigProvider"))


def test_a_bad_pattern_is_refused() -> None:
    settings = providers("env", "EnvVar") | {"config.providers.env.param.allowlist.pattern": "(a"}
    with pytest.raises(ConfigError, match=r"configuration config\.providers\.env\.param\.allowlist\.pattern"):
        resolve("x", settings)


def test_allowed_paths(tmp_path: Path, secrets: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ok.properties").write_text("a=1")
    settings = providers("file", "File") | {"config.providers.file.param.allowed.paths": f"{tmp_path}/in"}
    assert resolve(f"${{file:{tmp_path}/in/ok.properties:a}}", settings) == "1"
    for path in (secrets, f"{tmp_path}/in/../secrets.properties"):
        with pytest.raises(ConfigError, match="outside of the provider's"):
            resolve(f"${{file:{path}:user}}", settings)


@pytest.mark.parametrize(
    ("path", "reason"), [("relative", "is not absolute"), ("/not/there", "does not exist")]
)
def test_allowed_paths_must_be_real(path: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        resolve("x", providers("file", "File") | {"config.providers.file.param.allowed.paths": path})


def test_a_missing_value_names_key_and_provider(secrets: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(f"${{file:{secrets}:gone}}", providers("file", "File"))
    assert str(caught.value).endswith("for configuration k: provider 'file' has no value for 'gone'")


def test_a_missing_file_names_key_and_file() -> None:
    with pytest.raises(
        ConfigError, match=r"configuration k: provider 'file': /gone\.properties: No such file"
    ):
        resolve("${file:/gone.properties:a}", providers("file", "File"))


def test_resolved_values_stay_out_of_errors_and_reprs(secrets: Path) -> None:
    settings = Properties(providers("file", "File"))
    text = f"${{file:{secrets}:password}}"
    properties = resolved(Properties({"topics": text}), configured_providers(settings, {}))
    assert properties["topics"] == "hush!"
    assert "hush" not in repr(properties) + str(properties.error("topics", "bad"))
    assert text in str(properties.error("topics", "bad"))


PROVIDED = """
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users.properties"


def test_lines_name_users_and_passwords(file: Path) -> None:
    file.write_text("alice = wonder=land\nCN\\=b\\:ob = größe\n", encoding="utf-8")
    assert user_names(NamedFile(str(file))) == {"alice", "CN=b:ob"}
    assert user_passwords(NamedFile(str(file)), {}) == {"alice": "wonder=land", "CN=b:ob": "größe"}


def test_passwords_may_come_from_providers(file: Path) -> None:
    file.write_text(PROVIDED + "alice = ${env:ALICE}\n")
    assert user_names(NamedFile(str(file))) == {"alice"}
    assert user_passwords(NamedFile(str(file)), {"ALICE": "hush"}) == {"alice": "hush"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PROVIDED + "alice = hush-${env:NOBODY}\n", r"alice: provider 'env' has no value for 'NOBODY'"),
        ("alice =\n", r"users.properties: alice: the password is empty"),
        ("alice = \\uhush\n", r"Malformed \\uxxxx"),
    ],
)
def test_errors_contain_no_password(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=why) as error:
        user_passwords(NamedFile(str(file)), {})
    assert "hush" not in str(error.value)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"users\.properties: No such file"):
        user_names(NamedFile(str(file)))


@pytest.mark.parametrize("text", ["${:" * 330, "${file:" * 100_000, "${a}" * 250_000, "${" * 500_000])
def test_a_text_of_opening_placeholders_takes_linear_time(text: str) -> None:
    started = time.process_time()
    assert resolve(text, providers("file", "File")) == text
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${nocolon}${env:HOST}", "${nocolon}h"),
        ("a}b${env:HOST}c${env:HOST", "a}bhc${env:HOST"),
        ("$${env:HOST}}", "$h}"),
    ],
)
def test_a_placeholder_ends_at_the_first_brace(text: str, expected: str) -> None:
    assert resolve(text, providers("env", "EnvVar"), {"HOST": "h"}) == expected


def test_a_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a regular file"):
        resolve("${file:/dev/zero:x}", providers("file", "File"))
    with pytest.raises(ConfigError, match="is not a regular file"):
        user_names(NamedFile("/dev/zero"))


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is not a regular file"):
        resolve(f"${{file:{pipe}:x}}", providers("file", "File"))


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    for text in (f"${{file:{tmp_path}/big:x}}", f"${{directory:{tmp_path}:big}}"):
        with pytest.raises(ConfigError, match=f"is larger than {FILE_BYTES_MAX} bytes"):
            resolve(
                text,
                providers("file", "File")
                | {"config.providers": "file,directory", "config.providers.directory.class": "Directory"},
            )
